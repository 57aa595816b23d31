"""The synsets of WordNet, and the WordNet score of two phrases.

NLTK's reader requires the file `lexnames`, which Debian's package wordnet-base lacks, and refuses folders outside
of NLTK's data. Only index.* and *.exc are read here.
"""

import itertools
import os
import re
import zipfile
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .probeval_vectors import tokenize

_FOLDERS = ("/usr/share/wordnet", "/usr/local/share/wordnet", "/usr/local/WordNet-3.0/dict")
_HELP = (
    "Install WordNet by 'apt-get install wordnet-base' or 'python -m nltk.downloader wordnet', "
    "or set WNSEARCHDIR to the folder that contains index.noun."
)
# Suffixes of inflected forms and of their lemmas: morphy(7) of WordNet 3.0, in NLTK's order.
_SUFFIX_RULES = {
    "noun": "s> ses>s ves>f xes>x zes>z ches>ch shes>sh men>man ies>y",
    "verb": "s> ies>y es>e es> ed>e ed> ing>e ing>",
    "adj": "er> est> er>e est>e",
    "adv": "",
}
_SUFFIXES = {part: [rule.split(">") for rule in rules.split()] for part, rules in _SUFFIX_RULES.items()}
# NLTK's 179 English stop words at the time the ProtoQA evaluator was published.
_STOP_WORDS = """
i me my myself we our ours ourselves you you're you've you'll you'd your yours yourself yourselves he him his himself
she she's her hers herself it it's its itself they them their theirs themselves what which who whom this that that'll
these those am is are was were be been being have has had having do does did doing a an the and but if or because as
until while of at by for with about against between into through during before after above below to from up down in
out on off over under again further then once here there when where why how all any both each few more most other some
such no nor not only own same so than too very s t can will just don don't should should've now d ll m o re ve y ain
aren aren't couldn couldn't didn didn't doesn doesn't hadn hadn't hasn hasn't haven haven't isn isn't ma mightn
mightn't mustn mustn't needn needn't shan shan't shouldn shouldn't wasn wasn't weren weren't won won't wouldn wouldn't
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
# Most states that are kept at a token, the best ones, and most steps from states to states in a pair of phrases.
# Beyond that, in long phrases that share many words or repeat one, the score is a lower bound.
_MAX_STATES = 256
_MAX_STEPS = 2**15


class WordNet:
    """The synsets of WordNet, looked up as NLTK's `wordnet.synsets` does.

    The folder has index.* and *.exc, and may be in a zip file. Raises a ValueError if one of these files is missing.
    """

    def __init__(self, folder: Path | zipfile.Path) -> None:
        self._offsets: dict[str, dict[str, list[str]]] = {}
        self._exceptions: dict[str, dict[str, list[str]]] = {}
        try:
            for part in _SUFFIXES:
                index = (folder / f"index.{part}").read_text(encoding="utf-8")
                # lemma pos synset_cnt p_cnt [ptr_symbol...] sense_cnt tagsense_cnt offset...
                rows = [line.split() for line in index.splitlines() if not line.startswith(" ")]
                self._offsets[part] = {row[0]: row[-int(row[2]) :] for row in rows}
                exceptions = (folder / f"{part}.exc").read_text(encoding="utf-8").splitlines()
                self._exceptions[part] = {form: lemmas for form, *lemmas in map(str.split, exceptions)}
        except (OSError, KeyError) as error:
            raise ValueError(f"WordNet in {folder} is incomplete: {error}. {_HELP}") from error
        version = re.search(r"WordNet (\d+\.\d+)", index)
        self.version = version.group(1) if version else "unknown"
        # The number of words of the longest collocation.
        tables = (*self._offsets.values(), *self._exceptions.values())
        self.longest = 1 + max(name.count("_") for table in tables for name in table)

    def synsets(self, form: str) -> set[tuple[str, str]]:
        """Find the synsets of a word or a collocation (`hot_dog`): pairs of part of speech and offset."""
        form = form.lower()
        synsets: set[tuple[str, str]] = set()
        for part, offsets in self._offsets.items():
            bases = [form.removesuffix(old) + new for old, new in _SUFFIXES[part] if form.endswith(old)]
            for lemma in (form, *self._exceptions[part].get(form, bases)):
                synsets.update((part, offset) for offset in offsets.get(lemma, ()))
        return synsets


def load_wordnet() -> WordNet:
    """Load WordNet from the folder named by WNSEARCHDIR, from the system's, or from NLTK's data.

    Raises a ValueError that says how to get it if it is not found.
    """
    named = os.environ.get("WNSEARCHDIR")  # WordNet's own
    if named:
        return _load(Path(named))
    import nltk

    roots = [Path(root, "corpora") for root in nltk.data.path]
    in_nltk = [root / name for root in roots for name in ("wordnet", "wordnet.zip")]
    for folder in (*map(Path, _FOLDERS), *in_nltk):
        if folder.exists():
            return _load(folder)
    raise ValueError(f"WordNet was not found. {_HELP}")


@lru_cache(maxsize=4)
def _load(folder: Path) -> WordNet:
    return WordNet(zipfile.Path(folder, "wordnet/") if folder.is_file() else folder)


def content_tokens(text: str) -> list[str]:
    """Tokenize a phrase, and drop stop words."""
    return [token for token in tokenize(text) if token not in STOP_WORDS]


class Phrase(NamedTuple):
    """A phrase prepared for comparison.

    tokens : list of n str
    runs : from a key, a token or a synset, to the runs of tokens that have it: (start, end)
    """

    tokens: list[str]
    runs: dict[Any, list[tuple[int, int]]]


@lru_cache(maxsize=10_000)
def parse_phrase(text: str, wordnet: WordNet) -> Phrase:
    """Find the tokens of a phrase, and the synsets of their runs, up to WordNet's longest collocation.

    Surfaces of longer runs are not needed: where two are equal, their tokens match one to one.
    """
    tokens = content_tokens(text)
    runs: dict[Any, list[tuple[int, int]]] = {}
    for start, token in enumerate(tokens):
        runs.setdefault(token, []).append((start, start + 1))
        for end in range(start + 1, min(start + wordnet.longest, len(tokens)) + 1):
            for synset in wordnet.synsets("_".join(tokens[start:end])):
                runs.setdefault(synset, []).append((start, end))
    return Phrase(tokens, runs)


def partition_score(a: Phrase, b: Phrase) -> float:
    """Score two phrases by the best split of each into runs of tokens, as the ProtoQA evaluator does: in [0, 1].

    Runs match one to one, if their surfaces are equal or they share a synset; the score is the number of matches
    divided by the larger number of runs, and 0 where a phrase has only stop words. The evaluator tries every
    pair of partitions. The same maximum is found here by choosing disjoint matches from left to right, since
    the tokens between two matches are best left as one run.
    """
    common = a.runs.keys() & b.runs.keys()
    if not common:
        return 0.0
    if a.tokens == b.tokens:
        return 1.0
    # For each first token of a: the ends of its runs, with the bits of the tokens of b that match them.
    matches: list[set[tuple[int, int]]] = [set() for _ in a.tokens]
    for key in common:
        for (start, end), (first, last) in itertools.product(a.runs[key], b.runs[key]):
            matches[start].add((end, (1 << last) - (1 << first)))
    # At each token of a: (tokens of b in use, matches, whether the last run of a is unmatched) -> unmatched runs of a.
    states: list[dict[tuple[int, int, bool], int]] = [{} for _ in range(len(a.tokens) + 1)]
    states[0][0, 0, False] = 0
    for start, ends in enumerate(matches):
        reached = list(states[start].items())
        most = max(min(_MAX_STATES, _MAX_STEPS // (len(matches) * (1 + len(ends)))), 1)
        if len(reached) > most:
            reached = sorted(reached, key=lambda item: (item[1] - item[0][1], item[0]))[:most]
        for (used, count, in_gap), gaps in reached:
            steps = [(start + 1, (used, count, True), gaps + (not in_gap))]
            steps += [(end, (used | mask, count + 1, False), gaps) for end, mask in ends if not used & mask]
            for end, state, n_gaps in steps:
                states[end][state] = min(states[end].get(state, n_gaps), n_gaps)
    scores = [0.0]
    for (used, count, _), gaps in states[-1].items():
        # The tokens of b that are not in use form runs, too.
        free = ~used & ((1 << len(b.tokens)) - 1)
        scores.append(count / max(count + max(gaps, (free & ~(free << 1)).bit_count()), 1))
    return max(scores)


def phrase_scores(answers: list[str], gold: list[str], wordnet: WordNet) -> np.ndarray:
    """Score each answer against each gold answer as they are: (u, g), in [0, 1]."""
    left = [parse_phrase(text, wordnet) for text in answers]
    right = [parse_phrase(text, wordnet) for text in gold]
    scores = [partition_score(a, b) for a, b in itertools.product(left, right)]
    return np.array(scores).reshape(len(left), len(right))
