"""Demo of self_bleu: how much texts repeat each other's n-grams, and the same for shuffled words."""

import random
from collections.abc import Iterator
from typing import Any, Literal

import gradio as gr
from _kit import inputs, metric, sets
from _kit.page import Picture, Result, build, launch
from _kit.show import panels, plots
from words import compared, facts_of, is_unspaced, meaning, two_sets, variants

self_bleu = metric.load(__file__, "self_bleu")

TOKENIZERS = {
    "whitespace": "Spaces",
    "13a": "13a: as BLEU is reported",
    "intl": "International",
    "char": "Characters",
    "zh": "Chinese",
}
# What a token is called.
UNITS = {name: "character" if name in ("char", "zh") else "word" for name in TOKENIZERS}
AGGREGATES = {"set": "Pool each set", "corpus": "Pool all sets", "sentence": "Average single texts"}
SMOOTHINGS = {"default": "As usual", "nlg-eval": "nlg-eval", "method1": "Method 1", "none": "None"}
MOST_ORDERS = 5
# Title of the axis and caption of each measure that is drawn by order.
MEASURES = {
    "self_bleu": ("self-BLEU", "Higher is less diverse."),
    "distinct": ("Distinct-n", "Share of distinct n-grams. Higher is more diverse."),
    "entropy": ("Entropy-n, nats", "Evenness of the n-gram counts. Higher is more diverse."),
}
# Upper bounds on what is drawn: a browser is slow with more.
_MOST_LINES = 30
_MOST_TOKENS = 800
_MOST_CHARACTERS = 8_000


def score(texts: Any, chosen: Any, settings: dict[str, Any]) -> Result:
    """Score all sets, and the same texts with their words shuffled."""
    result = api(texts, **settings)
    order, tokenizer = int(settings["max_order"]), settings["tokenizer"]
    units = f"{UNITS[tokenizer]}s"
    shuffled_texts = [[shuffle(text, tokenizer, f"{i}") for i, text in enumerate(members)] for members in texts]
    shuffled = api(shuffled_texts, **settings)
    selected = [i for i in chosen if i is not None and 0 <= i < len(texts)]
    shown = selected[0] if selected else next(i for i, members in enumerate(texts) if len(members) > 1)

    repeated, shuffled_repeated = (phrases(members[shown], tokenizer, order) for members in (texts, shuffled_texts))
    html, cut = marked(texts[shown], repeated, tokenizer, order)
    shuffled_html, shuffled_cut = marked(shuffled_texts[shown], shuffled_repeated, tokenizer, order)
    scores = result["scores"][shown], shuffled["scores"][shown]
    against = "" if None in scores else f" They score as {compared(*scores)}."
    return Result(
        answer=answer(texts, result, shuffled, settings),
        pictures=[
            (html, f"Point at a phrase to see which other texts contain it.{cut}"),
            (shuffled_html, f"The same {units} in random order are nonsense.{against}{shuffled_cut}"),
            *by_order(texts, shown, (result, shuffled), tokenizer),
        ],
        details=sets.details(
            ("Set", "Phrase", units.capitalize(), "Texts", "In texts no."),
            [
                [i + 1, " ".join(phrase), len(phrase), len(where), ", ".join(str(j + 1) for j in sorted(where))]
                for i, members in enumerate(texts)
                for phrase, where in longest_phrases(members, tokenizer, order)
            ],
            texts,
        ),
        scores=sets.scores_table(texts, {"Self-BLEU": result["scores"], "Shuffled": shuffled["scores"]}),
        report=sets.report("self_bleu", result, texts),
        choices=sets.choices(texts),
        chosen=[shown],
    )


def by_order(
    texts: list[list[str]], shown: int, results: tuple[dict[str, Any], dict[str, Any]], tokenizer: str
) -> list[tuple[Any, str] | None]:
    """Draw the scores of one set by order, as written and shuffled, with captions; None if it is not scored."""
    pair = dict(zip(("As written", "Shuffled"), (result["details"][shown] for result in results), strict=True))
    if None in pair.values():
        return [None] * len(MEASURES)
    longest = longest_text(texts[shown], tokenizer)
    name = sets.set_name(texts, shown)
    pictures: list[tuple[Any, str] | None] = []
    for measure, (title, caption) in MEASURES.items():
        orders = [n for n in range(1, MOST_ORDERS + 1) if f"{measure}_{n}" in pair["As written"]]
        groups = {
            who: [scores[f"{measure}_{n}"] if n <= longest else None for n in orders] for who, scores in pair.items()
        }
        absent = f" There are no {longest + 1}-grams." if longest < orders[-1] else ""
        figure = plots.bars(groups, [f"{n}-grams" for n in orders], title)
        pictures.append((figure, (f"{name}. " if name else "") + caption + absent))
    return pictures


def longest_text(texts: list[str], tokenizer: str) -> int:
    """Return the number of tokens of the longest text."""
    return max(len(split(text, tokenizer)) for text in texts)


def split(text: str, tokenizer: str) -> list[str]:
    """Tokenize a text as the metric does."""
    ((tokens,), _) = metric.part(self_bleu, "self_bleu_tokenizers").tokenize([text], tokenizer, str)
    return tokens


def shuffle(text: str, tokenizer: str, seed: str) -> str:
    """Shuffle the words of a text, deterministically."""
    tokens = split(text, tokenizer)
    random.Random(f"{seed} {text}").shuffle(tokens)
    # With Chinese, a word in Latin script is one token: spaces keep it apart from the next.
    return ("" if tokenizer == "char" else " ").join(tokens)


def phrases(texts: list[str], tokenizer: str, order: int) -> dict[tuple[str, ...], set[int]]:
    """Return the n-grams that more than one text contains, with the indices of these texts."""
    holders: dict[tuple[str, ...], set[int]] = {}
    for i, text in enumerate(texts):
        tokens = split(text, tokenizer)
        for n in range(1, order + 1):
            for start in range(len(tokens) - n + 1):
                holders.setdefault(tuple(tokens[start : start + n]), set()).add(i)
    return {phrase: where for phrase, where in holders.items() if len(where) > 1}


def longest_phrases(texts: list[str], tokenizer: str, order: int) -> list[tuple[tuple[str, ...], set[int]]]:
    """Return the repeated phrases, the longest first, then those in the most texts."""
    repeated = phrases(texts, tokenizer, order)
    return sorted(repeated.items(), key=lambda item: (-len(item[0]), -len(item[1])))


def numbers(where: set[int], length: int) -> str:
    """List the numbers of texts, cut to a length."""
    return panels.shorten(", ".join(str(i + 1) for i in sorted(where)), length)


def first_tokens(texts: list[str], tokenizer: str) -> Iterator[tuple[list[str], bool]]:
    """Yield the tokens of the first texts, within the bounds on what is drawn, and whether a text is cut."""
    n_tokens = n_characters = 0
    for text in texts[:_MOST_LINES]:
        shown = []
        tokens = split(text, tokenizer)
        for token in tokens:
            n_tokens, n_characters = n_tokens + 1, n_characters + len(token)
            if n_tokens > _MOST_TOKENS or n_characters > _MOST_CHARACTERS:
                break
            shown.append(token)
        is_cut = len(shown) < len(tokens)
        yield shown, is_cut
        if is_cut:
            return


def marked(texts: list[str], repeated: dict[tuple[str, ...], set[int]], tokenizer: str, order: int) -> tuple[str, str]:
    """Return the texts with repeated phrases highlighted, and a remark if not all is shown."""
    lines, n_shown, is_any_cut = [], 0, False
    unit = UNITS[tokenizer]
    for i, (tokens, is_cut) in enumerate(first_tokens(texts, tokenizer)):
        pieces, at = [], 0
        n_shown, is_any_cut = n_shown + len(tokens), is_cut
        while at < len(tokens):
            for n in range(min(order, len(tokens) - at), 0, -1):
                phrase = tuple(tokens[at : at + n])
                if phrase in repeated:
                    tip = f"{n} {unit}{'s' if n > 1 else ''}, also in text {numbers(repeated[phrase] - {i}, 60)}"
                    pieces.append(panels.mark(" ".join(phrase), tip, n / order))
                    break
            else:
                n = 1
                pieces.append(panels.escape(tokens[at]))
            at += n
        lines.append(" ".join([*pieces, "…"] if is_cut else pieces))
    key = [(f"{n} {unit}{'s' if n > 1 else ''}", n / order) for n in range(1, order + 1)]
    remark = f" Only the first {n_shown:,} {unit}s are shown." if is_any_cut else sets.first_of(len(lines), len(texts))
    return panels.texts(lines, key), remark


def short_verdict(texts: list[list[str]], settings: dict[str, Any]) -> tuple[str, list[str]]:
    """Return a verdict if no text has words, or enough for the order, and caveats about the words and the sizes."""
    order, unit = int(settings["max_order"]), UNITS[settings["tokenizer"]]
    scored = [text for members in texts if len(members) > 1 for text in members]
    if unit == "word" and is_unspaced(scored):
        return (
            "These texts have no spaces between words, so no words are compared.",
            ["The score says nothing about these texts. Choose Chinese or Characters for “Split texts at”."],
        )
    n_short = sum(len(split(text, settings["tokenizer"])) < order for text in scored)
    n_copies = sum(len(members) - len(set(members)) for members in texts)
    verdict, notes = "", []
    if n_short == len(scored):
        verdict = f"Too short to compare: no text has {order} {unit}s, so no phrase of {order} {unit}s can repeat."
        notes.append(f"The score says nothing about these texts. Set the longest phrase below {order} {unit}s.")
    elif n_short:
        notes.append(
            f"{n_short:,} of {len(scored):,} texts have fewer than {order} {unit}s, so they contain no such phrase."
        )
    if n_copies:
        notes.append(f"{n_copies:,} text{'s are copies' if n_copies > 1 else ' is a copy'} of another in the same set.")
    tokens = [token for text in scored for token in split(text, settings["tokenizer"])]
    n_variants = variants(tokens)
    # Prose has some, so only many are said.
    are_many = n_variants and 4 * n_variants >= len(set(tokens))
    if unit == "word" and are_many and order <= max(len(split(text, settings["tokenizer"])) for text in scored):
        notes.append(
            f"{n_variants:,} word{'s differ' if n_variants > 1 else ' differs'} from another only in capitals or "
            "punctuation, and count as different."
        )
    if len(texts) == 2 and min(map(len, texts)) > 1 and len(texts[0]) != len(texts[1]):
        notes.append("The sets differ in size: self-BLEU tends to be larger in a larger set.")
    return verdict, notes


def answer(texts: list[list[str]], result: dict[str, Any], shuffled: dict[str, Any], settings: dict[str, Any]) -> str:
    """Return the answer: self-BLEU of the texts, and of the same texts shuffled."""
    order = int(settings["max_order"])
    too_short, notes = short_verdict(texts, settings)
    n_scored = sum(value is not None for value in result["scores"])
    if n_scored < len(texts):
        notes.append(f"{len(texts) - n_scored} of {len(texts)} sets contain a single text: not scored.")
    measure, ends = f"self-BLEU-{order}", ("0: nothing repeated", "1: copies")
    unit = UNITS[settings["tokenizer"]]
    longest = [longest_text(members, settings["tokenizer"]) for members in texts]

    def say(value: float) -> str:
        return "No verdict." if too_short else meaning(value, order, unit)

    compares = f"Self-BLEU compares {unit}s, not meanings."
    if len(texts) == n_scored == 2:
        pairs = zip(result["scores"], shuffled["scores"], strict=True)
        cards = [
            panels.Card(
                sets.set_name(texts, i),
                value,
                measure,
                f"{say(value)} Shuffled: {baseline:.2f}.",
                value,
                ends,
                i,
                facts_of(result["details"][i], unit, longest[i]),
            )
            for i, (value, baseline) in enumerate(pairs)
        ]
        verdict, facts = f"{two_sets(result['details'], order, unit)} {compares}", ""
    else:
        of = f"On average over {n_scored} sets. " if n_scored > 1 else ""
        value, baseline = result["self_bleu"], shuffled["self_bleu"]
        cards = [
            panels.Card("As written", value, measure, of + say(value), value, ends, 0),
            panels.Card(
                f"{unit.capitalize()}s shuffled",
                baseline,
                measure,
                "In random order.",
                baseline,
                ends,
                1,
            ),
        ]
        verdict = f"Shuffled into nonsense, these texts score as {compared(value, baseline)}. {compares}"
        scored = [length for length, score in zip(longest, result["scores"], strict=True) if score is not None]
        facts = panels.tiles(facts_of(result, unit, max(scored)))
        n_unpaired = sum(length < 2 for length in scored)
        if order > 1 and 0 < n_unpaired < n_scored:
            notes.append(f"{n_unpaired} of {n_scored} sets have no pairs of {unit}s: 0 in the mean of Distinct-2.")
    return panels.answer(cards, too_short or verdict, notes, result["signature"], facts)


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
        max_order: the largest n-gram order, from 1 to 5.
        tokenizer: the tokenizer of the texts.
        aggregate: the level at which counts are pooled.
        smoothing: the value in place of a precision of zero.

    Returns
    -------
        The result of the metric: "self_bleu", from 0 to 1, higher is less diverse; each order's self-BLEU, Distinct and
        Entropy; "scores", one for each set; "details"; and the "signature" to report with the score.

    """
    inputs.check_choice("tokenizer", tokenizer, TOKENIZERS)
    inputs.check_choice("aggregate", aggregate, AGGREGATES)
    inputs.check_choice("smoothing", smoothing, SMOOTHINGS)
    inputs.check_number("max_order", max_order, 1, MOST_ORDERS, is_integer=True)
    given = inputs.check_sets(texts, sets.LIMITS)
    if all(len(members) < 2 for members in given):
        raise inputs.InputError(
            "A single text has no others to repeat: a set needs at least two. Write one text a line."
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


SPACE = sets.describe_space(
    name="self_bleu",
    title="How much do these texts repeat each other?",
    lead="Self-BLEU, Distinct-n and Entropy-n count repeated words and phrases. They are fast and widely reported, "
    "and they ignore meaning.",
    settings={
        "max_order": gr.Slider(
            1, MOST_ORDERS, 4, step=1, label="Longest phrase, in words", info="The order of the n-grams."
        ),
        "tokenizer": gr.Dropdown(inputs.options(TOKENIZERS), value="whitespace", label="Split texts at"),
    },
    more_settings={
        "aggregate": gr.Radio(inputs.options(AGGREGATES), value="set", label="Average"),
        "smoothing": gr.Radio(
            inputs.options(SMOOTHINGS), value="default", label="Smoothing", info="If nothing matches."
        ),
    },
    choosers=("Look at",),
    pictures=(
        Picture("Repeated phrases", is_figure=False),
        Picture("The same texts, shuffled", is_figure=False),
        Picture("Self-BLEU by order"),
        Picture("Distinct by order"),
        Picture("Entropy by order"),
    ),
    score=score,
    api=api,
)

demo = build(SPACE)

if __name__ == "__main__":
    self_bleu.compute(predictions=["warm up", "warm up"])
    launch(demo, SPACE)
