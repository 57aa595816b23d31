"""Demo of self_bleu: how much texts repeat each other's n-grams, and the same for shuffled words."""

import random
import re
from collections.abc import Sequence
from typing import Any, Literal

import gradio as gr
import pandas as pd
from _kit import inputs, panels, plots, scoring, sets
from _kit.page import Drawn, Picture, Result, Space, build, launch

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
# Labels of repeated phrases by their lengths, with the colours of their marks.
_LABELS = ("single", *(f"{n} in a row" for n in range(2, MOST_ORDERS + 1)))
_WRITTEN = dict(zip(_LABELS, ("#dfe1fd", "#c8ccfb", "#b0b6f9", "#9a9ff7", "#8489f5"), strict=True))
_SHUFFLED = dict(zip(_LABELS, ("#fbe0d5", "#f7c9b5", "#f3b296", "#ef9c77", "#eb865a"), strict=True))
# The lower bound of each interpretation.
WORDS = (
    (0.8, "They nearly copy each other."),
    (0.5, "They repeat each other's phrases a lot."),
    (0.2, "They repeat each other's phrases here and there."),
    (0.02, "They repeat few of each other's phrases."),
    (0.0, "They share hardly any long phrase."),
)
# Scripts without spaces between words: Thai to Myanmar, Khmer, and Chinese and Japanese.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")


def compute(texts: Any, max_order: Any, tokenizer: Any) -> scoring.Scored:
    """Check the input and compute the metric."""
    inputs.check_number("max_order", max_order, 1, MOST_ORDERS, is_integer=True)
    if not isinstance(tokenizer, str) or tokenizer not in TOKENIZERS:
        raise inputs.InputError(f"tokenizer must be one of {', '.join(TOKENIZERS)}. Got {str(tokenizer)[:80]!r}.")
    given = inputs.check_sets(texts, sets.LIMITS)
    if all(len(members) < 2 for members in given):
        raise inputs.InputError("A single text has no others to repeat: a set needs at least two. Write one a line.")
    settings = {"max_order": int(max_order), "tokenizer": tokenizer, "singletons": "skip", "details": True}
    return scoring.compute(self_bleu, predictions=given, **settings)


def score(given: sets.Sets, chosen: Sequence[int | None], max_order: int, tokenizer: str) -> Result:
    """Score all sets, and the same texts with their words shuffled."""
    result = compute(given.texts, max_order, tokenizer).result
    written = [[split(text, tokenizer) for text in texts] for texts in given.texts]
    mixed = [[shuffle(tokens, f"{i}") for i, tokens in enumerate(texts)] for texts in written]
    # With Chinese, a word in Latin script is one token: spaces keep it apart from the next.
    space = "" if tokenizer == "char" else " "
    shuffled = compute([[space.join(tokens) for tokens in texts] for texts in mixed], max_order, tokenizer).result
    shown = next(i for i in sets.two_of(chosen, len(written), len(written)) if len(written[i]) > 1)
    name = f"{given.names[shown]}. " if given.names[shown] else ""
    found = [phrases(texts, int(max_order)) for texts in written]
    rows = [
        (given.figure_name(i), " ".join(phrase), len(phrase), ", ".join(str(j + 1) for j in sorted(where)))
        for i, of_set in enumerate(found)
        for phrase, where in sorted(of_set.items(), key=lambda item: (-len(item[0]), -len(item[1])))
    ]
    by_order = {
        who: [scores["details"][shown][f"self_bleu_{n}"] for n in range(1, int(max_order) + 1)]
        for who, scores in (("As written", result), ("Shuffled", shuffled))
    }
    figure = plots.bars(by_order, [f"{n}-grams" for n in range(1, int(max_order) + 1)], "self-BLEU")
    return Result(
        answer=answer(given, written, result, shuffled, int(max_order), tokenizer),
        pictures=[
            marked(written[shown], found[shown], f"{name}Phrases that another text contains, too."),
            marked(mixed[shown], phrases(mixed[shown], int(max_order)), f"{name}In random order, which is nonsense."),
            Drawn(figure, f"{name}Higher is less diverse."),
        ],
        details=pd.DataFrame(rows, columns=["Set", "Phrase", "Length", "In texts no."]),
        report={"metric": "self_bleu", **result, "predictions": given.texts},
        scores=sets.scores(given, {"Self-BLEU": result["scores"], "Shuffled": shuffled["scores"]}),
        choices=given.choices(),
        chosen=[shown],
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


def marked(texts: list[list[str]], repeated: dict[tuple[str, ...], set[int]], caption: str) -> Drawn:
    """Return the texts as pieces, the repeated phrases labelled by their lengths."""
    pieces: list[tuple[str, str | None]] = []
    n_shown = 0
    for i, tokens in enumerate(texts, 1):
        n_shown += len(tokens)
        if n_shown > _MOST_TOKENS:
            return Drawn(pieces, caption + sets.first_of(i - 1, len(texts)))
        pieces.append((f"{i}. ", None))
        at = 0
        while at < len(tokens):
            longest = range(min(MOST_ORDERS, len(tokens) - at), 0, -1)
            n = next((n for n in longest if tuple(tokens[at : at + n]) in repeated), 0)
            pieces += [(" ".join(tokens[at : at + max(n, 1)]), _LABELS[n - 1] if n else None), (" ", None)]
            at += max(n, 1)
        pieces.append(("\n", None))
    return Drawn(pieces, caption)


def answer(
    given: sets.Sets,
    tokens: list[list[list[str]]],
    result: dict[str, Any],
    shuffled: dict[str, Any],
    order: int,
    tokenizer: str,
) -> str:
    """Return the answer: the scores of one or two sets, or the mean of more, and of the same words shuffled."""
    unread, notes = cautions(given, tokens, order, tokenizer)
    scored = [i for i, value in enumerate(result["scores"]) if value is not None]
    if len(scored) < len(given.texts):
        notes.append(f"{len(given.texts) - len(scored)} of {len(given.texts)} sets contain a single text: not scored.")
    pairs = [(given.names[i], result["scores"][i], shuffled["scores"][i], result["details"][i]) for i in scored]
    if len(scored) > 2:
        pairs = [(f"Mean of {len(scored)} sets", result["self_bleu"], shuffled["self_bleu"], result)]
    cards = []
    for series, (name, value, mixed, detail) in enumerate(pairs):
        meaning = "" if unread else next(words for least, words in WORDS if value >= least)
        facts = [
            (f"{mixed:.2f}", "Shuffled", "the same words in random order."),
            (f"{detail['distinct_1']:.0%}", "Distinct-1", "of the words are distinct."),
            (f"{detail['entropy_1']:.2f}", "Entropy-1", "nats: evenness of the counts."),
        ]
        ends = ("0: nothing repeated", "1: copies")
        cards.append(panels.Card(name, value, f"self-BLEU-{order}", meaning, value, ends, series, facts))
    first, other = ("These texts repeat", "shuffled words") if len(pairs) == 1 else ("Set 1 repeats", "set 2")
    gap = pairs[0][1] - (pairs[1][1] if len(pairs) == 2 else pairs[0][2])
    than = "as much as" if abs(gap) < 0.005 else "more than" if gap > 0 else "less than"
    verdict = f"{first} {than} {other}. Self-BLEU compares words, not meanings."
    return panels.answer(cards, unread or verdict, notes, result["signature"])


def cautions(given: sets.Sets, tokens: list[list[list[str]]], order: int, tokenizer: str) -> tuple[str, list[str]]:
    """Say why the score says nothing, "" if it does, and what else to know about the texts."""
    scored = [text for texts in tokens if len(texts) > 1 for text in texts]
    letters = "".join(letter for text in scored for word in text for letter in word if letter.isalpha())
    if tokenizer not in ("char", "zh") and 2 * len(_UNSPACED.findall(letters)) > len(letters):
        return "These texts have no spaces between words: choose Chinese or Characters for “Split texts at”.", []
    n_short, notes = sum(len(text) < order for text in scored), list[str]()
    if n_short == len(scored):
        return f"Too short to compare: no text has {order} words. Make the longest phrase shorter.", []
    if n_short:
        notes.append(f"{n_short:,} of {len(scored):,} texts are shorter than the longest phrase.")
    if len(given.texts) == 2 and len(given.texts[0]) != len(given.texts[1]):
        notes.append("The sets differ in size: self-BLEU tends to be larger in a larger set.")
    return "", notes


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


SPACE = Space(
    name="self_bleu",
    title="How much do these texts repeat each other?",
    lead="Self-BLEU, Distinct-n and Entropy-n count repeated words and phrases. They are fast and widely reported, "
    "and they ignore meaning.",
    limits=sets.LIMITS,
    boxes=(sets.BOX,),
    examples=sets.EXAMPLES,
    steps=sets.STEPS,
    rows=sets.rows_of,
    group=sets.group,
    score=score,
    pictures=(
        Picture("Repeated phrases", "marked", colours=_WRITTEN),
        Picture("The same texts, shuffled", "marked", colours=_SHUFFLED),
        Picture("Self-BLEU by order", is_wide=True),
    ),
    api=api,
    sample=sets.SAMPLE,
    settings={
        "max_order": gr.Slider(1, MOST_ORDERS, 4, step=1, label="Longest phrase", info="The order of the n-grams."),
        "tokenizer": gr.Dropdown(
            [(label, name) for name, label in TOKENIZERS.items()], value="whitespace", label="Split texts at"
        ),
    },
    choosers=("Look at",),
)

demo = build(SPACE)

if __name__ == "__main__":
    self_bleu.compute(predictions=["warm up", "warm up"])
    launch(SPACE, demo)
