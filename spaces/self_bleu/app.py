"""Demo of self_bleu: how much texts repeat each other's words, and why words are not enough."""

import random
import sys
from pathlib import Path
from typing import Any, Literal

# In the checkout the kit lies beside this folder; in a Space, beside this file.
sys.path.append(str(Path(__file__).resolve().parents[1]))

import gradio as gr
from _kit import inputs, metric, panels, plots, sets
from _kit.page import Picture, Result, Space, build, launch

self_bleu = metric.load(__file__, "self_bleu")

TOKENIZERS = {
    "whitespace": "Spaces",
    "13a": "13a: as BLEU is reported",
    "intl": "International",
    "char": "Characters",
    "zh": "Chinese",
}
AGGREGATES = {"set": "Pool each set", "corpus": "Pool all sets", "sentence": "Average single texts"}
SMOOTHINGS = {"default": "As usual", "nlg-eval": "nlg-eval", "method1": "Method 1", "none": "None"}
MOST_ORDERS = 5
# The least score that bears each name.
WORDS = (
    (0.8, "They nearly copy each other."),
    (0.5, "They repeat each other a lot."),
    (0.2, "They repeat each other here and there."),
    (0.02, "They repeat each other little."),
    (0.0, "They hardly share a phrase."),
)
_MOST_PHRASES = 200


def score_sets(texts: Any, max_order: int, tokenizer: str, aggregate: str, smoothing: str) -> dict[str, Any]:
    """Check what a visitor sent, and compute."""
    for name, value, known in (
        ("tokenizer", tokenizer, TOKENIZERS),
        ("aggregate", aggregate, AGGREGATES),
        ("smoothing", smoothing, SMOOTHINGS),
    ):
        if value not in known:
            raise inputs.InputError(f"{name} must be one of {', '.join(known)}. Got {str(value)[:80]!r}.")
    if int(max_order) != max_order or not 1 <= max_order <= MOST_ORDERS:
        raise inputs.InputError(f"max_order must be a whole number from 1 to {MOST_ORDERS}. Got {max_order}.")
    given = inputs.check_sets(texts, sets.LIMITS)
    if all(len(members) < 2 for members in given):
        raise inputs.InputError(
            "A text alone has no others to repeat: a set needs at least two. Write one text a line."
        )
    return self_bleu.compute(
        predictions=given,
        max_order=int(max_order),
        tokenizer=tokenizer,
        aggregate=aggregate,
        smoothing=None if smoothing == "default" else smoothing,
        singletons="skip",
        details=True,
    )


def score(texts: Any, chosen: Any, settings: dict[str, Any]) -> Result:
    """Score sets, and the same texts with their words shuffled."""
    result = score_sets(texts, **settings)
    order, tokenizer = int(settings["max_order"]), settings["tokenizer"]
    shuffled_texts = [[shuffle(text, tokenizer, f"{i}") for i, text in enumerate(members)] for members in texts]
    shuffled = score_sets(shuffled_texts, **settings)
    asked = [i for i in chosen if i is not None and 0 <= i < len(texts)]
    shown = asked[0] if asked else next(i for i, members in enumerate(texts) if len(members) > 1)

    own, other = (phrases(members[shown], tokenizer, order) for members in (texts, shuffled_texts))
    pair = {"As written": result, "Shuffled": shuffled}
    orders = [str(n) for n in range(1, order + 1)]
    by_order = {
        measure: plots.bars(
            {name: [scores[f"{measure}_{n}"] for n in orders] for name, scores in pair.items()},
            [f"{n}-grams" for n in orders],
            title,
        )
        for measure, title in (("self_bleu", "self-BLEU"), ("distinct", "Distinct-n"), ("entropy", "Entropy-n, nats"))
    }
    repeated = sorted(own.items(), key=lambda item: (-len(item[0]), -len(item[1])))
    return Result(
        answer=answer(texts, result, shuffled, order),
        pictures=[
            (marked(texts[shown], own, tokenizer, order), "Point at a phrase to see which other texts hold it."),
            (
                marked(shuffled_texts[shown], other, tokenizer, order),
                "The same words in a random order are nonsense, and yet score as more diverse: form is easily fooled.",
            ),
            (by_order["self_bleu"], "Higher is less diverse."),
            (by_order["distinct"], "Share of n-grams that are distinct. Higher is more diverse."),
            (by_order["entropy"], "How evenly n-grams are spread. Higher is more diverse."),
        ],
        headers=("Phrase", "Words", "Texts", "In texts no."),
        rows=[
            [" ".join(phrase), len(phrase), len(where), ", ".join(str(i + 1) for i in sorted(where))]
            for phrase, where in repeated[:_MOST_PHRASES]
        ],
        report={"metric": "self_bleu", **result, "predictions": texts},
        choices=[f"Set {i + 1}: {panels.shorten(members[0], 40)}" for i, members in enumerate(texts)],
        chosen=[shown],
    )


def split(text: str, tokenizer: str) -> list[str]:
    """Split a text as the metric does."""
    ((tokens,), _) = metric.part(self_bleu, "self_bleu").tokenize([text], tokenizer, str)
    return tokens


def shuffle(text: str, tokenizer: str, seed: str) -> str:
    """Put the words of a text into another order, always the same."""
    tokens = split(text, tokenizer)
    random.Random(f"{seed} {text}").shuffle(tokens)
    return ("" if tokenizer in ("char", "zh") else " ").join(tokens)


def phrases(texts: list[str], tokenizer: str, order: int) -> dict[tuple[str, ...], set[int]]:
    """Find the n-grams that more than one text holds, and which."""
    holders: dict[tuple[str, ...], set[int]] = {}
    for i, text in enumerate(texts):
        tokens = split(text, tokenizer)
        for n in range(1, order + 1):
            for start in range(len(tokens) - n + 1):
                holders.setdefault(tuple(tokens[start : start + n]), set()).add(i)
    return {phrase: where for phrase, where in holders.items() if len(where) > 1}


def marked(texts: list[str], repeated: dict[tuple[str, ...], set[int]], tokenizer: str, order: int) -> str:
    """Show texts with what they repeat marked: the longer the phrase, the stronger."""
    lines = []
    for i, text in enumerate(texts[: sets.MOST_IN_MATRIX]):
        tokens, pieces, at = split(text, tokenizer), [], 0
        while at < len(tokens):
            for n in range(min(order, len(tokens) - at), 0, -1):
                phrase = tuple(tokens[at : at + n])
                if phrase in repeated:
                    others = ", ".join(str(j + 1) for j in sorted(repeated[phrase] - {i}))
                    tip = f"{n} word{'s' if n > 1 else ''}, also in text {panels.shorten(others, 60)}"
                    pieces.append(panels.mark(" ".join(phrase), tip, n / order))
                    break
            else:
                n = 1
                pieces.append(panels.escape(tokens[at]))
            at += n
        lines.append(" ".join(pieces))
    key = [(f"{n} word{'s' if n > 1 else ''}", n / order) for n in range(1, order + 1)]
    return panels.texts(lines, key)


def meaning(value: float) -> str:
    """Say a score in words."""
    return next(words for least, words in WORDS if value >= least)


def answer(texts: list[list[str]], result: dict[str, Any], shuffled: dict[str, Any], order: int) -> str:
    """Show self-BLEU of the texts, and of the same texts shuffled."""
    notes = []
    n_scored = sum(value is not None for value in result["scores"])
    if n_scored < len(texts):
        notes.append(f"{len(texts) - n_scored} of {len(texts)} sets hold one text, which repeats no other: left out.")
    unit, ends = f"self-BLEU-{order}", ("0: nothing repeated", "1: copies")
    if len(texts) == n_scored == 2:
        pairs = zip(result["scores"], shuffled["scores"], strict=True)
        cards = [
            panels.Card(
                f"Set {'AB'[i]}", own, f"{own:.2f}", unit, f"{meaning(own)} Shuffled: {other:.2f}.", own, ends, i
            )
            for i, (own, other) in enumerate(pairs)
        ]
        more, less = ("A", "B") if result["scores"][0] >= result["scores"][1] else ("B", "A")
        close = abs(result["scores"][0] - result["scores"][1]) < 0.005
        verdict = (
            "Both sets repeat their words alike."
            if close
            else f"Set {more} repeats its words more than set {less}. That says nothing yet about meaning."
        )
    else:
        of = f"On average over {n_scored} sets. " if n_scored > 1 else ""
        own, other = result["self_bleu"], shuffled["self_bleu"]
        cards = [
            panels.Card("As written", own, f"{own:.2f}", unit, of + meaning(own), own, ends, 0),
            panels.Card("Words shuffled", other, f"{other:.2f}", unit, "The same words, now nonsense.", other, ends, 1),
        ]
        verdict = (
            "Shuffled into nonsense, these texts look more diverse. Self-BLEU sees words, not meaning."
            if other < own - 0.005
            else "Shuffled into nonsense, these texts look as diverse as before. Self-BLEU sees words, not meaning."
        )
    facts = panels.tiles(
        [
            (f"{result['distinct_1']:.0%}", "Distinct-1", "of the words are different words."),
            (f"{result['distinct_2']:.0%}", "Distinct-2", "of the pairs of words are different.")
            if order > 1
            else ("–", "Distinct-2", "needs order 2 or more."),
            (f"{result['entropy_1']:.2f}", "Entropy-1", "nats: how evenly words are used."),
        ]
    )
    return panels.answer(cards, verdict, notes, result["signature"], facts)


def api(
    texts: list[list[str]],
    max_order: int = 4,
    tokenizer: Literal["whitespace", "13a", "intl", "char", "zh"] = "whitespace",
    aggregate: Literal["set", "corpus", "sentence"] = "set",
    smoothing: Literal["default", "nlg-eval", "method1", "none"] = "default",
) -> dict[str, Any]:
    """Compute self-BLEU, Distinct-n and Entropy-n: how much the texts of a set repeat each other's words.

    Args:
        texts: sets of texts, each a list of strings. A set of one text has no score.
        max_order: the longest n-grams, from 1 to 5.
        tokenizer: how texts are split.
        aggregate: what is pooled before it is averaged.
        smoothing: what stands for a precision of zero.

    Returns
    -------
        The result of the metric: "self_bleu", from 0 to 1, higher is less diverse; each order's self-BLEU, Distinct and
        Entropy; "scores", one for each set; "details"; and the "signature" to report with the score.

    """
    return score_sets(texts, max_order, tokenizer, aggregate, smoothing)


def _choices(names: dict[str, str]) -> list[tuple[str, str]]:
    return [(label, value) for value, label in names.items()]


SPACE = Space(
    name="self_bleu",
    title="How much do these texts repeat each other?",
    lead="Self-BLEU, Distinct-n and Entropy-n count words that are used again. They are quick and well known, and they "
    "see form alone.",
    limits=sets.LIMITS,
    boxes=(sets.BOX,),
    roles=sets.ROLES,
    from_boxes=inputs.sets_from_text,
    from_rows=inputs.sets_from_rows,
    examples=sets.EXAMPLES,
    settings={
        "max_order": gr.Slider(
            1, MOST_ORDERS, 4, step=1, label="Longest phrase, in words", info="The order of the n-grams.", render=False
        ),
        "tokenizer": gr.Dropdown(_choices(TOKENIZERS), value="whitespace", label="Split texts at", render=False),
    },
    more_settings={
        "aggregate": gr.Radio(_choices(AGGREGATES), value="set", label="Average", render=False),
        "smoothing": gr.Radio(
            _choices(SMOOTHINGS), value="default", label="Smoothing", info="What stands for no match.", render=False
        ),
    },
    choosers=("Look at",),
    pictures=(
        Picture("What is repeated", is_figure=False),
        Picture("The same texts, shuffled", is_figure=False),
        Picture("Self-BLEU by order"),
        Picture("Distinct by order"),
        Picture("Entropy by order"),
    ),
    score=score,
    api=api,
    steps=sets.STEPS,
)

demo = build(SPACE)

if __name__ == "__main__":
    self_bleu.compute(predictions=["warm up", "warm up"])
    launch(demo, SPACE)
