"""Demo of self_bleu: how much texts repeat each other's n-grams, and the same for shuffled words."""

import random
from collections.abc import Container
from itertools import chain
from typing import Any, Literal

import gradio as gr
import pandas as pd
from _kit import inputs, panels, plots, scoring, server, sets
from _kit.page import Drawn, Picture, Result, Space, build

self_bleu = scoring.load(__file__, "self_bleu")
is_unspaced = scoring.part(self_bleu, "core").is_unspaced

TOKENIZERS = {
    "whitespace": "Spaces",
    "13a": "13a: as BLEU is reported",
    "intl": "International",
    "char": "Characters",
    "zh": "Chinese",
}
# Tokenizers of scripts that have no spaces.
CHARACTERS = ("char", "zh")
MOST_ORDERS = 5
# Labels of repeated phrases by their lengths.
_LABELS = ("single", *(f"{n} in a row" for n in range(2, MOST_ORDERS + 1)))
# Orders of the words, whose mean is compared with the texts as they are written.
SHUFFLES = 50
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


def compute(texts: Any, max_order: Any, tokenizer: Any) -> scoring.Scored:
    """Check the input and compute the metric."""
    inputs.check_number("max_order", max_order, 1, MOST_ORDERS, is_integer=True)
    if not isinstance(tokenizer, str) or tokenizer not in TOKENIZERS:
        raise inputs.InputError(f"tokenizer must be one of {', '.join(TOKENIZERS)}. Got {str(tokenizer)[:80]!r}.")
    given = inputs.check_sets(texts, sets.LIMITS)
    if all(len(members) < 2 for members in given):
        raise inputs.InputError("A single text has no others to repeat: a set needs at least two. Write one a line.")
    return run(given, int(max_order), tokenizer)


def run(given: list[list[str]], order: int, tokenizer: str) -> scoring.Scored:
    """Compute the metric; a set of one text has no score."""
    return scoring.compute(self_bleu, predictions=given, max_order=order, tokenizer=tokenizer, singletons="skip")


def score(rows: list[inputs.Row], markers: bool, max_order: int, tokenizer: str) -> Result:
    """Score all sets, and the same texts with their words shuffled."""
    given = sets.group(rows, strip=markers)
    order = int(max_order)
    scored = compute(given.texts, max_order, tokenizer)
    result = scored.result
    tokens = [split(texts, tokenizer) for texts in given.texts]
    mixed = [shuffle(texts, 0) for texts in tokens]
    shuffled = score_shuffled(tokens, order, tokenizer)
    repeated = [phrases(texts, order) for texts in tokens]
    longest = [max(map(len, of_set), default=0) for of_set in repeated]
    # It warns of texts that are too short, and of those that its tokenizer does not split.
    is_doubtful = bool(result["warnings"])
    is_split = tokenizer in CHARACTERS or not any(map(is_unspaced, chain(*given.texts)))
    shares_nothing = is_split and not any(longest)

    def card_of(name: str, value: float, mixed: float, detail: dict[str, Any], length: int) -> panels.Card:
        headline = "" if is_doubtful and not shares_nothing else headline_of(value, length, order)
        remark = f"The same words in random order: {mixed:.2f}, the mean of {SHUFFLES} orders."
        ends = (f"0: no {phrase_of(order)} shared", "1: copies")
        facts = facts_of(detail, order)
        return panels.Card(name, headline, value, f"self-BLEU-{order}", remark, value, mixed, ends, facts=facts)

    def card_of_set(i: int, value: float) -> panels.Card:
        return card_of("", value, shuffled[i][f"self_bleu_{order}"], result["details"][i], longest[i])

    shown = sets.shown_of(result["scores"])[0]
    name = f"{given.name(shown)}. " if given.name(shown) else ""
    figure = order_bars(result["details"][shown], shuffled[shown], order)
    pictures = [
        marked(tokens[shown], order, f"{name}Phrases that another text contains, too.", 0),
        marked(mixed[shown], order, f"{name}In one random order, which is nonsense.", 1),
        Drawn(figure, f"{name}Higher is less diverse."),
    ]
    overall = pd.DataFrame(shuffled).mean().to_dict()
    n_scored = sum(score is not None for score in result["scores"])
    title = f"Mean of {n_scored} sets"
    mean = card_of(title, result["self_bleu"], overall[f"self_bleu_{order}"], result, max(longest))
    said = f"{comparison(given, result, overall, order)} Self-BLEU compares words, not meanings."
    if shares_nothing:
        said = "No word is in two texts. Self-BLEU compares words, not meanings."
    elif is_doubtful:
        said = "The score says little about some of these texts."
    sizes = "self-BLEU tends to be larger in a larger set."
    return sets.result(given, scored, pictures, phrase_table(given, repeated), card_of_set, mean, said, sizes)


def phrase_of(order: int) -> str:
    """Name the longest n-grams."""
    return f"phrase of {panels.in_words(order)} words" if order > 1 else "word"


def headline_of(value: float, longest: int, order: int) -> str:
    """Interpret a score; `longest` is the length of the longest phrase in two texts."""
    if not longest:
        return "No word is shared."
    if longest < order:
        return f"No {phrase_of(order)} is shared."
    return next(words for least, words in WORDS if value >= least)


def facts_of(detail: dict[str, Any], order: int) -> list[tuple[str, str, str]]:
    """Return the measures beside self-BLEU."""
    facts = [
        (f"{detail['distinct_1']:.0%}", "Distinct-1", "of the words are distinct."),
        (f"{detail['entropy_1']:.2f}", "Entropy-1", "nats: evenness of the counts."),
    ]
    if order > 2:
        facts.append((f"{detail['self_bleu_2']:.2f}", "Self-BLEU-2", "of phrases of two."))
    return facts


def order_bars(written: dict[str, Any], shuffled: dict[str, Any], order: int) -> Any:
    """Draw self-BLEU by order, of a set as it is written and of its shuffled words."""
    orders = range(1, order + 1)
    names = [f"{n}-grams" for n in orders]
    values = {
        "As written": [written[f"self_bleu_{n}"] for n in orders],
        "Shuffled": [shuffled[f"self_bleu_{n}"] for n in orders],
    }
    return plots.bars(values, names, names, "self-BLEU")


def phrase_table(given: sets.Sets, repeated: list[dict[tuple[str, ...], set[int]]]) -> pd.DataFrame:
    """Return the table of the phrases in more than one text of a set, the longest first."""
    table = []
    for i, holders in enumerate(repeated):
        ordered = sorted(holders.items(), key=lambda item: (-len(item[0]), -len(item[1])))
        for phrase, texts in ordered:
            numbers = ", ".join(str(j + 1) for j in sorted(texts))
            table.append((given.name(i), " ".join(phrase), len(phrase), numbers))
    shown = pd.DataFrame(table, columns=["Set", "Phrase", "Length", "In texts no."])
    return shown if len(given.texts) > 1 else shown.drop(columns="Set")


def split(texts: list[str], tokenizer: str) -> list[list[str]]:
    """Tokenize texts as the metric does."""
    tokens, _ = scoring.part(self_bleu, "self_bleu_tokenizers").tokenize(texts, tokenizer, str)
    return tokens


def shuffle(texts: list[list[str]], seed: int) -> list[list[str]]:
    """Shuffle the words of each text, deterministically."""
    generator = random.Random(seed)
    return [generator.sample(tokens, len(tokens)) for tokens in texts]


def score_shuffled(sets_of_tokens: list[list[list[str]]], order: int, tokenizer: str) -> list[dict[str, float]]:
    """Return self-BLEU by order of each set with its words shuffled: the means of `SHUFFLES` orders of the words.

    A set of one text has NaN.
    """
    # With Chinese, a word in Latin script is one token: spaces keep it apart from the next.
    space = "" if tokenizer == "char" else " "
    texts = []
    for tokens in sets_of_tokens:
        for seed in range(SHUFFLES):
            texts.append([space.join(words) for words in shuffle(tokens, seed)])
    details = run(texts, order, tokenizer).result["details"]
    names = [f"self_bleu_{n}" for n in range(1, order + 1)]
    table = pd.DataFrame(details)[names].astype(float)
    return table.groupby(table.index // SHUFFLES).mean().to_dict("records")


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
    repeated = phrases(texts, order)
    shown = [pieces_of(tokens, repeated, order) for tokens in texts]
    return Drawn(panels.render("marked", shown, _LABELS[:order], series), caption)


def pieces_of(tokens: list[str], repeated: Container[tuple[str, ...]], order: int) -> list[tuple[str, int]]:
    """Divide a text into its repeated phrases, the longest first, and single words; with lengths, 0 if not repeated."""
    pieces = []
    at = 0
    while at < len(tokens):
        longest = range(min(order, len(tokens) - at), 0, -1)
        length = next((n for n in longest if tuple(tokens[at : at + n]) in repeated), 0)
        end = at + max(length, 1)
        pieces.append((" ".join(tokens[at:end]), length))
        at = end
    return pieces


def comparison(given: sets.Sets, result: dict[str, Any], shuffled: dict[str, float], order: int) -> str:
    """Compare two sets, or the texts with their words shuffled, at the largest order at which one repeats anything."""
    scored = [i for i, value in enumerate(result["scores"]) if value is not None]
    names = ["these texts", "shuffled words"]
    sides = [result, shuffled]
    if len(scored) == 2:
        names = [given.name(i) for i in scored]
        sides = [result["details"][i] for i in scored]
    gaps = {}
    for n in range(1, order + 1):
        left, right = (side[f"self_bleu_{n}"] for side in sides)
        if max(left, right) >= EQUAL:
            gaps[n] = left - right
    if not gaps:
        return "Hardly anything is repeated."
    n = max(gaps)
    begin = ""
    kind = ""
    if n < order:
        begin = f"Hardly any phrase of {panels.in_words(order)} words is shared. "
        kind = f" of phrases of {panels.in_words(n)} words" if n > 1 else " of single words"
    if abs(gaps[n]) < EQUAL:
        return f"{begin}As much repetition{kind} in {names[0]} as in {names[1]}."
    return f"{begin}{'More' if gaps[n] > 0 else 'Less'} repetition{kind} in {names[0]} than in {names[1]}."


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


ORDER_SLIDER = gr.Slider(1, MOST_ORDERS, 4, step=1, label="Longest phrase", info="The order of the n-grams.")
TOKENIZER_LIST = gr.Dropdown(
    [(label, name) for name, label in TOKENIZERS.items()], value="whitespace", label="Split texts at"
)
SPACE = Space(
    **sets.SHARED,
    metric=self_bleu,
    title="How much do these texts repeat each other?",
    lead="Self-BLEU, Distinct-n and Entropy-n count repeated words and phrases. They are fast and widely reported, "
    "and they ignore meaning.",
    score=score,
    pictures=(
        Picture("Repeated phrases", is_html=True),
        Picture("The same texts, shuffled", is_html=True),
        Picture("Self-BLEU by order", is_wide=True),
    ),
    api=api,
    settings={"markers": sets.MARKER_BOX, "max_order": ORDER_SLIDER, "tokenizer": TOKENIZER_LIST},
)

demo = build(SPACE)

if __name__ == "__main__":
    self_bleu.compute(predictions=["warm up", "warm up"])
    server.serve(demo, SPACE.limits.file_bytes)
