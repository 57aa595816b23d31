"""Find caveats: faults in the texts that could mislead the readers of a report."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, combinations, product
from typing import Any

import numpy as np

from text_metrics.core_api import TIE, WHITESPACE, find_unread, first_maximum, is_other_script, is_unspaced, tokenize
from text_metrics.questions.groups import FEW_SETS
from text_metrics.reporting.formats import count, listed, number
from text_metrics.reporting.inputs import WORDS_OF_PROMPT, Inputs
from text_metrics.reporting.lengths import word_counts
from text_metrics.reporting.results import LENGTHS, MEASURES, Caveat
from text_metrics.texts import PROMPT, REASONING, SPECIAL

# Standard deviations by which lengths must differ to explain other numbers.
_LENGTHS_APART = 0.5
# Texts of a system whose language is identified, which takes time.
_MOST_IDENTIFIED = 500
# A metric that cannot measure this share of the texts of a system says nothing about it.
MOST = 0.5
# Metrics by the model that reads the texts.
BY_ENCODER = ("vendi_embed", "n_classes", "chamfer_diversity", "quality_vendi_embed")
BY_GRUEN = ("quality", "quality_vendi_embed")
# Titles of the caveats about text that is not the answer.
NO_ANSWERS = {REASONING: "reasoning in texts", SPECIAL: "special tokens in texts", PROMPT: "prompts in texts"}
# The number of words that a text needs.
BY_WORDS = {"self_bleu": 4, "distinct": 2}
_IN_SENTENCES = {"self_bleu": "self-BLEU", "distinct": "Distinct-2"}
# Metrics that depend on the length of texts: all but the mean of ratings.
BY_LENGTH = ("vendi_embed", "n_classes", "chamfer_diversity", "self_bleu", "distinct", "compression_ratio")


def find_caveats(
    inputs: Inputs, tokenizer: Any, by_default: bool, by_gruen: bool, same_length: bool = False
) -> list[Caveat]:
    """Return what could mislead, if the default encoder, or gruen, reads the texts.

    same_length : whether the report has the scores of texts cut to the same length, too
    """
    readers: dict[str, list[str]] = {}
    if by_default:
        readers["the default encoder"] = [name for name in BY_ENCODER if name != "n_classes" or inputs.classes is None]
    if by_gruen:
        readers["GRUEN"] = list(BY_GRUEN)
    caveats = list(_of_reading(inputs))
    for name in inputs.marks:
        caveats += _of_answers(name, inputs)
    caveats += _of_lengths(inputs, same_length)
    for i, (name, texts) in enumerate(inputs.by_system().items()):
        caveats += _of_languages(i, name, texts, readers)
    return [*caveats, *find_short_texts(inputs, tokenizer)]


def _of_reading(inputs: Inputs) -> Iterator[Caveat]:
    """Count the rows and prompts that were not used, and say whether prompts should be passed as contexts."""
    n = len(inputs.ids)
    sizes = inputs.sizes
    every = list(range(len(inputs.systems)))
    about: Any = {"systems": every, "metrics": list(MEASURES), "is_doubt": True}
    if inputs.bad:
        n_bad = sum(row.get("n_lines", 1) for row in inputs.bad)
        yield Caveat("invalid rows", f"{count(n_bad, 'row')} could not be used: see bad.jsonl.", **about)
    for sentence in inputs.repeats:
        yield Caveat("repeated rows", sentence, **about)
    if n < inputs.n_all:
        of = f"{n:,} of {count(inputs.n_all, 'prompt')}"
        sentence = f"Only {of} have two texts or more from every system; the others are ignored."
        yield Caveat("missing prompts", sentence, **about)
    if inputs.smallest is not None:
        yield Caveat(
            "sets of different sizes",
            f"Sets have {sizes.min()} to {sizes.max()} texts: scores are what is expected of {inputs.smallest} texts "
            "of each (rarefied), except for length and quality.",
            every,
            [name for name in MEASURES if name not in ("length", "quality")],
            is_doubt=True,
        )
    if n < FEW_SETS:
        sentence = f"With {count(n, 'prompt')}, intervals may be too narrow, and tests find little."
        yield Caveat("few prompts", sentence, **about)
    key = inputs.context_column
    if inputs.contexts is None and (key or np.median(word_counts(inputs.ids)) >= WORDS_OF_PROMPT):
        if inputs.are_from_python:
            option = f'contexts="{key}"' if key else "the argument contexts"
        else:
            option = f"--context-key {key}" if key else "--context-key"
        yield Caveat(
            "prompts not taken out",
            "Texts share the words of their prompt, which are not diversity of their own. For open prompts, pass their "
            f"texts as contexts ({option}). Vendi scores then agree better with people: on McDiv nuggets, their "
            "rank correlation is 0.72 instead of 0.58.",
            every,
            list(BY_ENCODER),
            is_doubt=True,
        )


def _of_answers(name: str, inputs: Inputs) -> Iterator[Caveat]:
    """Count the texts of a system, or of people, that hold what is not the answer.

    If most do, the metrics do not measure the diversity of the system's answers.
    """
    marks = inputs.marks[name]
    about = [inputs.systems.index(name)] if name in inputs.systems else []
    metrics = [metric for metric in MEASURES if metric != "quality"]
    option = 'strip="{}"' if inputs.are_from_python else "--strip {}"
    for kind, title in NO_ANSWERS.items():
        if marks.left[kind]:
            is_most = bool(about) and marks.left[kind] >= MOST * marks.n_texts
            sentence = marks.warning(option, [kind], f"texts of {name}")
            yield Caveat(title, sentence, about, metrics, is_doubt=not is_most)
    if marks.n_empty:
        sentence = marks.emptied(f"texts of {name}")
        yield Caveat("texts that are empty once stripped", sentence, about, list(MEASURES), is_doubt=True)


def _of_lengths(inputs: Inputs, same_length: bool) -> Iterator[Caveat]:
    """Name the systems whose texts differ in length from those of another one, or of people."""
    names = inputs.systems
    lengths = [word_counts(texts) for texts in inputs.by_system().values()]
    apart = _differences(lengths, combinations(range(len(names)), 2))
    if apart:
        first, second = _largest(apart)
        systems = sorted(set().union(*apart))
        option = "same_length=True" if inputs.are_from_python else "--same-length"
        option = "as the second table does" if same_length else option
        sentence = (
            f"Texts of {names[first]} have {number(lengths[first].mean(), 1)} words, of {names[second]} "
            f"{number(lengths[second].mean(), 1)}. All measures of diversity depend on "
            "length: Vendi score, meanings and Chamfer diversity, too, in a direction that differs with the settings. "
            f"In doubt is the order of {listed(names[i] for i in systems)}: compare texts cut to the same length "
            f"({option})."
        )
        yield Caveat(LENGTHS, sentence, systems, list(BY_LENGTH), is_doubt=True)
    if inputs.people is None:
        return
    lengths.append(word_counts(chain.from_iterable(inputs.people.values())))
    beside = _differences(lengths, product(range(len(names)), [len(names)]))
    if beside:
        i, of_people = _largest(beside)
        systems = [i for i, _ in beside]
        sentence = (
            f"Texts of {names[i]} have {number(lengths[i].mean(), 1)} words, of people "
            f"{number(lengths[of_people].mean(), 1)}. In doubt is how close {listed(names[i] for i in systems)} are to "
            "people."
        )
        yield Caveat("lengths beside people", sentence, systems, ["vendi_embed"], is_doubt=True)


def _differences(lengths: list[np.ndarray], pairs: Iterable[tuple[int, int]]) -> dict[tuple[int, int], float]:
    """Return the differences of mean lengths by pair that are large enough to explain other numbers."""
    differences = {}
    for i, j in pairs:
        difference = float(abs(lengths[i].mean() - lengths[j].mean()))
        if difference >= max(_LENGTHS_APART * np.sqrt((lengths[i].var() + lengths[j].var()) / 2), TIE):
            differences[i, j] = difference
    return differences


def _largest(differences: Mapping[tuple[int, int], float]) -> tuple[int, int]:
    """Return the key of the largest value, the first of equals."""
    return list(differences)[int(first_maximum(np.array(list(differences.values()))))]


def _of_languages(i: int, name: str, texts: list[str], readers: Mapping[str, list[str]]) -> Iterator[Caveat]:
    """Count the texts of system i that are empty, or that `readers`, which read only English prose, cannot read."""
    n_empty = sum(not text.strip() for text in texts)
    if n_empty:
        sentence = f"{n_empty:,} of {count(len(texts), 'text')} of {name} are empty."
        yield Caveat("empty texts", sentence, [i], list(MEASURES), is_doubt=True)
    step = -(-len(texts) // _MOST_IDENTIFIED)
    sample = texts[::step] if readers else []
    unknown = {i for i, text in enumerate(sample) if is_other_script(text)}
    foreign = set().union(*find_unread(sample)) - unknown
    is_most = len(unknown | foreign) >= MOST * len(sample)
    metrics = sorted(set().union(*readers.values()))
    about: Any = {"systems": [i], "metrics": metrics, "is_doubt": not is_most}
    of = f"{count(len(sample), 'text')} of {name}"
    if len(sample) < len(texts):
        of += " that were looked at"
    if unknown:
        by_default = "the default encoder" in readers
        end = "so different ones may count as the same" if by_default else "so their ratings mean nothing"
        kind = f"emoji or in a script that {listed(readers)} cannot read"
        yield Caveat("unknown script", f"{len(unknown):,} of {of} are {kind}, {end}.", **about)
    if foreign:
        kind = f"source code or not in English, which is all that {listed(readers)} can read"
        yield Caveat("language", f"{len(foreign):,} of {of} are {kind}.", **about)


def find_short_texts(inputs: Inputs, tokenizer: Any) -> Iterator[Caveat]:
    """Name the systems most of whose texts have too few words for pairs or groups of four of them."""
    for i, (name, texts) in enumerate(inputs.by_system().items()):
        if tokenizer == WHITESPACE and np.mean(list(map(is_unspaced, texts))) >= MOST:
            sentence = (
                f"Most texts of {name} are written without spaces, at which self-BLEU and Distinct-2 divide them: "
                "choose another tokenizer, such as tokenizer=char or tokenizer=zh."
            )
            yield Caveat("texts without spaces", sentence, [i], list(BY_WORDS))
            continue
        tokens, _ = tokenize(texts, tokenizer, f"text {{}} of {name}".format)
        n_words = np.array(list(map(len, tokens)))
        short = [metric for metric, least in BY_WORDS.items() if np.mean(n_words < least) >= MOST]
        if short:
            titles = listed(_IN_SENTENCES[metric] for metric in short)
            least = min(BY_WORDS[metric] for metric in short)
            sentence = f"Most texts of {name} have fewer than {count(least, 'word')}: {titles} cannot compare them."
            yield Caveat("short texts", sentence, [i], short)
