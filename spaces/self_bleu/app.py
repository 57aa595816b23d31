"""Demo of self_bleu: how much texts repeat each other's n-grams, and the same for shuffled words."""

import random
from typing import Any, Literal

import gradio as gr
import pandas as pd
from _kit import inputs, panels, plots, scoring, server, sets
from _kit.page import Drawn, Picture, Result, build

self_bleu = scoring.load(__file__, "self_bleu")

TOKENIZERS = {
    "whitespace": "Spaces",
    "13a": "13a: as BLEU is reported",
    "intl": "International",
    "char": "Characters",
    "zh": "Chinese",
}
# Orders of n-grams, and tokens that are marked: a browser is slow with more.
MOST_ORDERS, _MOST_TOKENS = 5, 800
# Labels of repeated phrases by their lengths.
_LABELS = ("single", *(f"{n} in a row" for n in range(2, MOST_ORDERS + 1)))
# Smaller differences of scores are not named.
EQUAL = 0.005
# The lower bound of each interpretation.
WORDS = (
    (0.8, "They nearly copy each other."),
    (0.5, "They repeat each other's phrases a lot."),
    (0.2, "They repeat each other's phrases here and there."),
    (0.02, "They repeat few of each other's phrases."),
    (0.0, "They share hardly any long phrase."),
)
NOT_COMPARED = "The score says little about some of these texts."


def compute(texts: Any, max_order: Any, tokenizer: Any) -> scoring.Scored:
    """Check the input and compute the metric."""
    inputs.check_number("max_order", max_order, 1, MOST_ORDERS, is_integer=True)
    if not isinstance(tokenizer, str) or tokenizer not in TOKENIZERS:
        raise inputs.InputError(f"tokenizer must be one of {', '.join(TOKENIZERS)}. Got {str(tokenizer)[:80]!r}.")
    given = inputs.check_sets(texts, sets.LIMITS)
    if all(len(members) < 2 for members in given):
        raise inputs.InputError("A single text has no others to repeat: a set needs at least two. Write one a line.")
    settings = {"max_order": int(max_order), "tokenizer": tokenizer, "singletons": "skip"}
    return scoring.compute(self_bleu, predictions=given, **settings)


def score(rows: list[inputs.Row], max_order: int, tokenizer: str) -> Result:
    """Score all sets, and the same texts with their words shuffled."""
    given, order = sets.group(rows), int(max_order)
    scored = compute(given.texts, max_order, tokenizer)
    result, scores = scored.result, scored.result["scores"]
    written = [[split(text, tokenizer) for text in texts] for texts in given.texts]
    mixed = [[shuffle(tokens, f"{i}") for i, tokens in enumerate(texts)] for texts in written]
    # With Chinese, a word in Latin script is one token: spaces keep it apart from the next.
    space = "" if tokenizer == "char" else " "
    shuffled = compute([[space.join(tokens) for tokens in texts] for texts in mixed], max_order, tokenizer).result
    shown = sets.shown_of(scores)[0]
    name = f"{given.name(shown)}. " if given.name(shown) else ""
    repeated = [phrases(texts, order) for texts in written]
    table = [
        (given.figure_name(i), " ".join(phrase), len(phrase), ", ".join(str(j + 1) for j in sorted(where)))
        for i, of_set in enumerate(repeated)
        for phrase, where in sorted(of_set.items(), key=lambda item: (-len(item[0]), -len(item[1])))
    ]
    by_order = {
        who: [values["details"][shown][f"self_bleu_{n}"] for n in range(1, order + 1)]
        for who, values in (("As written", result), ("Shuffled", shuffled))
    }
    orders = [f"{n}-grams" for n in range(1, order + 1)]
    figure = plots.bars(by_order, orders, orders, "self-BLEU")
    # It warns of texts that are too short, and of those that its tokenizer does not split.
    unread = NOT_COMPARED if result["warnings"] else ""

    longest = [max(map(len, of_set), default=0) for of_set in repeated]

    def card_of(name: str, value: float, mixed: float, detail: dict[str, Any], length: int) -> panels.Card:
        phrase = f"phrase of {panels.in_words(order)} words"
        facts = [
            (f"{detail['distinct_1']:.0%}", "Distinct-1", "of the words are distinct."),
            (f"{detail['entropy_1']:.2f}", "Entropy-1", "nats: evenness of the counts."),
            *([(f"{detail['self_bleu_2']:.2f}", "Self-BLEU-2", "of phrases of two.")] if order > 2 else []),
        ]
        headline = next(words for least, words in WORDS if value >= least)
        if length < order:
            headline = f"No {phrase} is shared."
        remark, ends = f"The same words in random order: {mixed:.2f}.", (f"0: no {phrase} shared", "1: copies")
        unit = f"self-BLEU-{order}"
        return panels.Card(name, "" if unread else headline, value, unit, remark, value, mixed, ends, facts=facts)

    return sets.result(
        given,
        scored,
        [
            marked(written[shown], order, f"{name}Phrases that another text contains, too.", 0),
            marked(mixed[shown], order, f"{name}In random order, which is nonsense.", 1),
            Drawn(figure, f"{name}Higher is less diverse."),
        ],
        pd.DataFrame(table, columns=["Set", "Phrase", "Length", "In texts no."]),
        lambda i, value: card_of("", value, shuffled["scores"][i], result["details"][i], longest[i]),
        card_of(f"Mean of {len(scores)} sets", result["self_bleu"], shuffled["self_bleu"], result, max(longest)),
        unread or f"{comparison(given, result, shuffled, order)} Self-BLEU compares words, not meanings.",
        sets.size_notes(given, "self-BLEU tends to be larger in a larger set."),
    )


def split(text: str, tokenizer: str) -> list[str]:
    """Tokenize a text as the metric does."""
    ((tokens,), _) = scoring.part(self_bleu, "self_bleu_tokenizers").tokenize([text], tokenizer, str)
    return tokens


def shuffle(tokens: list[str], seed: str) -> list[str]:
    """Shuffle the words of a text, deterministically."""
    return random.Random(f"{seed} {' '.join(tokens)}").sample(tokens, len(tokens))


def phrases(texts: list[list[str]], order: int) -> dict[tuple[str, ...], set[int]]:
    """Return the n-grams that more than one text contains, with the indices of these texts."""
    holders: dict[tuple[str, ...], set[int]] = {}
    for i, tokens in enumerate(texts):
        for n in range(1, order + 1):
            for start in range(len(tokens) - n + 1):
                holders.setdefault(tuple(tokens[start : start + n]), set()).add(i)
    return {phrase: where for phrase, where in holders.items() if len(where) > 1}


def marked(texts: list[list[str]], order: int, caption: str, series: int) -> Drawn:
    """Return the texts with their repeated phrases, of at most `order` words, marked by length."""
    repeated, shown = phrases(texts, order), list[list[tuple[str, int]]]()
    n_shown = 0
    for tokens in texts:
        n_shown += len(tokens)
        if n_shown > _MOST_TOKENS:
            break
        pieces, at = [], 0
        while at < len(tokens):
            longest = range(min(order, len(tokens) - at), 0, -1)
            n = next((n for n in longest if tuple(tokens[at : at + n]) in repeated), 0)
            pieces.append((" ".join(tokens[at : at + max(n, 1)]), n))
            at += max(n, 1)
        shown.append(pieces)
    content = panels.render("marked", shown, _LABELS[:order], series)
    return Drawn(content, caption + sets.first_of(len(shown), len(texts)))


def comparison(given: sets.Sets, result: dict[str, Any], shuffled: dict[str, Any], order: int) -> str:
    """Compare two sets, or the texts with their words shuffled, at the largest order at which one repeats anything."""
    scored = [i for i, value in enumerate(result["scores"]) if value is not None]
    names, sides = ["these texts", "shuffled words"], [result, shuffled]
    if len(scored) == 2:
        names, sides = [given.name(i) for i in scored], [result["details"][i] for i in scored]
    n = next((n for n in range(order, 0, -1) if max(side[f"self_bleu_{n}"] for side in sides) >= EQUAL), 0)
    if not n:
        return "No word is in two texts."
    of_what = "" if n == order else f" of phrases of {panels.in_words(n)} words" if n > 1 else " of single words"
    none = "" if n == order else f"Hardly any phrase of {panels.in_words(order)} words is shared. "
    gap = sides[0][f"self_bleu_{n}"] - sides[1][f"self_bleu_{n}"]
    if abs(gap) < EQUAL:
        return f"{none}As much repetition{of_what} in {names[0]} as in {names[1]}."
    return f"{none}{'More' if gap > 0 else 'Less'} repetition{of_what} in {names[0]} than in {names[1]}."


def api(
    texts: list[list[str]],
    max_order: int = 4,
    tokenizer: Literal["whitespace", "13a", "intl", "char", "zh"] = "whitespace",
) -> dict[str, Any]:
    """Compute self-BLEU, Distinct-n and Entropy-n: how much the texts of a set repeat each other's words.

    Args:
        texts: sets of texts, each a list of strings. A set of one text has no score.
        max_order: the largest n-gram order, from 1 to 5.
        tokenizer: the tokenizer of the texts.

    Returns
    -------
        The result of the metric: "self_bleu", from 0 to 1, higher is less diverse; each order's self-BLEU, Distinct and
        Entropy; "scores", one for each set; "details"; "warnings"; and the "signature" to report with the score.

    """
    return compute(texts, max_order, tokenizer).result


SPACE = sets.space(
    metric=self_bleu,
    title="How much do these texts repeat each other?",
    lead="Self-BLEU, Distinct-n and Entropy-n count repeated words and phrases. They are fast and widely reported, "
    "and they ignore meaning.",
    score=score,
    pictures=(
        Picture("Repeated phrases", "html"),
        Picture("The same texts, shuffled", "html"),
        Picture("Self-BLEU by order", is_wide=True),
    ),
    api=api,
    settings={
        "max_order": gr.Slider(1, MOST_ORDERS, 4, step=1, label="Longest phrase", info="The order of the n-grams."),
        "tokenizer": gr.Dropdown(
            [(label, name) for name, label in TOKENIZERS.items()], value="whitespace", label="Split texts at"
        ),
    },
)

demo = build(SPACE)

if __name__ == "__main__":
    self_bleu.compute(predictions=["warm up", "warm up"])
    server.serve(demo, SPACE.limits.file_bytes)
