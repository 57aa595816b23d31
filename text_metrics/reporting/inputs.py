"""The sets of texts that a report compares, one of each system for each prompt, from files or from Python.

Nothing here imports torch, so that invalid input is reported at once.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from text_metrics.core_api import TextSets, describe, flatten, parse_number, parse_sets, split_list
from text_metrics.files.columns import Column
from text_metrics.files.rows import Source
from text_metrics.files.sets import Keys, Reader, Unit, common_size
from text_metrics.files.systems import check_one_system, count_repeats, repeat_sentences
from text_metrics.options import form_of
from text_metrics.reporting.lengths import word_counts
from text_metrics.reporting.results import Origin
from text_metrics.texts import PROMPT, Marks, clean

# Settings of the encoder, and of one metric each, that a report takes.
SETTINGS = ("model", "long_texts", "batch_size", "device", "same", "tokenizer")
# From this number of words on, a prompt is worth passing as a context.
WORDS_OF_PROMPT = 3
# Cubes of larger ratings, which the intervals sum up, could overflow.
LARGEST_RATING = 1e12


class RatedText(NamedTuple):
    """A text with its rating, NaN without one, and its class among the texts of its set, None without one."""

    text: str
    rating: float = math.nan
    label: Any = None


# The texts of a system by prompt.
RatedSets = dict[str, list[RatedText]]


class Inputs(NamedTuple):
    """The texts of all systems, paired by prompt; what is not given is None.

    bad : file, row and error of each row that is skipped
    n_all : the number of prompts of any system
    ids : the p prompts to which every system has two texts or more, in order
    texts : for each system, for each of these prompts, a list of texts
    rated_by, quality : name of the ratings, and those of all these texts, in order, (n,): NaN without them
    people : texts of people by prompt
    contexts : the context of each of these prompts, which its texts answer
    classes : the class of each text among those of its set, shaped like `texts`
    repeats : likely faults in the rows of prompts, a sentence each
    strip, marks : the kinds of text other than answers that were removed; counts of them by system, and for "people"
    context_column : a column that seems to hold the prompts' texts, if no contexts are given
    """

    systems: list[str]
    sources: list[Origin]
    bad: list[dict[str, Any]]
    n_all: int
    ids: list[str]
    texts: list[list[list[str]]]
    rated_by: str | None
    quality: np.ndarray
    people: dict[str, list[str]] | None
    contexts: list[str | None] | None
    classes: list[list[list[Any]]] | None = None
    repeats: Sequence[str] = ()
    strip: Sequence[str] = ()
    marks: Mapping[str, Marks] = {}
    context_column: str | None = None

    def by_system(self) -> dict[str, list[str]]:
        """Return all texts of each system, in the order of the prompts."""
        texts = [list(chain.from_iterable(sets)) for sets in self.texts]
        return dict(zip(self.systems, texts, strict=True))

    @property
    def are_from_python(self) -> bool:
        """True if the texts are arguments of `text_metrics.report`, and False if they are from files."""
        return not any(source.file for source in self.sources)

    @property
    def sizes(self) -> np.ndarray:
        """The number of texts of each set: (systems, p)."""
        return np.array([list(map(len, sets)) for sets in self.texts])

    @property
    def smallest(self) -> int | None:
        """The size to which sets are rarefied; None where all have one size."""
        return common_size(self.sizes)

    @property
    def set_size(self) -> float:
        """The number of texts that a score is of: of every set, or to which sets are rarefied."""
        return float(self.sizes.min())

    def ordered(self, order: Sequence[int]) -> "Inputs":
        """Return the inputs with the systems in another order, a permutation of their indices."""
        ratings = np.split(self.quality, self.sizes.sum(axis=1).cumsum()[:-1])
        systems = [self.systems[i] for i in order]
        return self._replace(
            systems=systems,
            sources=[self.sources[i] for i in order],
            texts=[self.texts[i] for i in order],
            quality=np.concatenate([ratings[i] for i in order]),
            classes=self.classes and [self.classes[i] for i in order],
            marks={name: self.marks[name] for name in systems} | dict(self.marks),
        )


def _by_prompt(sets: RatedSets, ids: list[str], name: str) -> list[list[Any]]:
    """List a field of the texts of each of some prompts."""
    read = attrgetter(name)
    return [list(map(read, sets[prompt])) for prompt in ids]


def pair_systems(
    systems: Mapping[str, RatedSets],
    sources: list[Origin],
    bad: list[dict[str, Any]],
    rated_by: str | None,
    people: RatedSets | None,
    contexts: Mapping[str, str | None] | None,
    has_classes: bool = False,
    strip: Sequence[str] = (),
) -> Inputs:
    """Strip the texts, and pair the sets of the systems by prompt; raises a ValueError if they have none in common.

    Texts of a set are sorted, so that no number depends on their order.
    """
    marks: dict[str, Marks] = {}
    sets = []
    for name, rated_sets in systems.items():
        stripped, marks[name] = _strip(rated_sets, strip, contexts or {})
        sets.append(stripped)
    of_people = None
    if people is not None:
        name = "people" if "people" not in systems else "the people"
        stripped, marks[name] = _strip(people, strip, contexts or {})
        of_people = dict(zip(stripped, _by_prompt(stripped, list(stripped), "text"), strict=True))
    ids = []
    for prompt in sorted(sets[0]):
        n_texts = [len(each.get(prompt, ())) for each in sets]
        if min(n_texts) > 1:
            ids.append(prompt)
    if not ids:
        raise ValueError(
            "there is nothing to compare: no prompt has two texts or more of every system, and one text has no "
            "diversity. Check what names the prompts, and what holds the texts."
        )
    if of_people is not None and of_people.keys().isdisjoint(ids):
        raise ValueError("people (--people) have no text for any prompt of the systems: check the prompts.")
    all_prompts = set().union(*sets)
    ratings = [chain.from_iterable(_by_prompt(each, ids, "rating")) for each in sets]
    return Inputs(
        systems=list(systems),
        sources=sources,
        bad=bad,
        n_all=len(all_prompts),
        ids=ids,
        texts=[_by_prompt(each, ids, "text") for each in sets],
        rated_by=rated_by,
        quality=np.array(list(chain.from_iterable(ratings))),
        people=of_people,
        contexts=None if contexts is None else [contexts.get(prompt) for prompt in ids],
        classes=[_by_prompt(each, ids, "label") for each in sets] if has_classes else None,
        strip=strip,
        marks=marks,
    )


def _strip(sets: RatedSets, kinds: Sequence[str], contexts: Mapping[str, str | None]) -> tuple[RatedSets, Marks]:
    """Strip some kinds from the texts of each prompt, which are then sorted, and count all."""
    stripped = RatedSets()
    marks = Marks()
    for prompt, rated in sets.items():
        texts, prompt_marks = clean([each.text for each in rated], kinds, contexts.get(prompt))
        changed = [each._replace(text=text) for each, text in zip(rated, texts, strict=True)]
        stripped[prompt] = sorted(changed, key=attrgetter("text"))
        marks += prompt_marks
    return stripped, marks


def read_sets(
    systems: Any,
    prompts: Sequence[str] | None,
    quality: Any,
    people: Sequence[Sequence[str]] | None,
    contexts: Sequence[str | None] | None,
    classes: Any = None,
    strip: Sequence[str] = (),
) -> Inputs:
    """Read the arguments of `text_metrics.report`; raises a TypeError or ValueError that names the invalid one."""
    if not isinstance(systems, Mapping) or not systems:
        raise TypeError(f"systems must be a dict from names to lists of sets. Got {describe(systems)}.")
    names = list(map(str, systems))
    if twice := [name for name in systems if names.count(str(name)) > 1]:
        raise ValueError(f"systems must have names that differ as text. Got {twice}.")
    if PROMPT in strip and contexts is None:
        raise ValueError("strip: 'prompt' requires contexts, the prompts that the texts answer.")
    parsed = {str(name): _parse(sets, f"systems[{name!r}]") for name, sets in systems.items()}
    if classes is not None and not isinstance(classes, Mapping):
        raise TypeError(f"classes must be a dict from names of systems to labels. Got {describe(classes)}.")
    for name, values in (("quality", quality), ("classes", classes)):
        if isinstance(values, Mapping) and (unknown := [system for system in values if str(system) not in parsed]):
            raise ValueError(f"{name} has values of {unknown}, which systems lacks.")
    n = len(next(iter(parsed.values())).sizes)
    if prompts is None:
        # Numbers of one width sort as text, too.
        width = len(str(n))
        ids = [f"{i:0{width}}" for i in range(1, n + 1)]
    else:
        ids = list(map(str, prompts))
    given = {f"systems[{name!r}]": sets for name, sets in systems.items()}
    given["prompts"] = prompts if isinstance(prompts, str) else ids
    given["people"] = people
    given["contexts"] = contexts
    for name, values in given.items():
        if values is not None and (isinstance(values, str) or len(values) != n):
            raise ValueError(f"{name} must have an entry for each of {n} prompts. Got {describe(values)}.")
    if len(set(ids)) < n:
        raise ValueError("prompts must differ: the sets of a system for one prompt make one set.")
    rated = {}
    for name, sets in parsed.items():
        ratings = [math.nan] * len(sets.texts)
        if isinstance(quality, Mapping):
            flat = flatten(quality.get(name), sets, f"quality[{name!r}]", "rating")
            ratings = [parse_number(value, "a rating", -LARGEST_RATING, LARGEST_RATING) for value in flat]
        labels = [None] * len(sets.texts)
        if classes is not None:
            labels = flatten(classes.get(name), sets, f"classes[{name!r}]", "label", are_lists=False)
        rated_texts = list(map(RatedText, sets.texts, ratings, labels))
        members = split_list(rated_texts, sets.sizes)
        rated[name] = dict(zip(ids, members, strict=True))
    sources = [Origin("", n, 0, n, len(sets.texts)) for sets in parsed.values()]
    of_people = None
    if people is not None:
        of_people = {prompt: [RatedText(text) for text in texts] for prompt, texts in zip(ids, people, strict=True)}
    context_of: Any = None if contexts is None else dict(zip(ids, contexts, strict=True))
    rated_by = "rating" if isinstance(quality, Mapping) else None
    return pair_systems(rated, sources, [], rated_by, of_people, context_of, classes is not None, strip)


def _parse(sets: Any, name: str) -> TextSets:
    try:
        parsed = parse_sets(sets)
    except (TypeError, ValueError) as error:
        raise type(error)(str(error).replace("predictions", name)) from None
    if not parsed.nested:
        raise TypeError(f"{name} must be a list of sets, each a list of texts. Got {describe(sets)}.")
    return parsed


def read_inputs(options: Any, tables: Mapping[Path, Any] = {}) -> Inputs:
    """Read all files and pair the systems; raises a ValueError for a wrong file.

    tables : what is read instead of a file of this name, like a `Source`
    """
    keys = Keys(options.text_key, options.id_key, options.system_key)
    form = form_of(options)
    columns = [
        Column("quality", options.quality_key, True, (-LARGEST_RATING, LARGEST_RATING), options.quality_scale),
        Column("contexts", options.context_key, is_optional=True),
        Column("classes", options.classes_key, True),
    ]
    columns = [column for column in columns if column.name is not None]
    files = {}
    for path in options.files.values():
        files[path] = read_units(tables.get(path) or Source(path, **form), keys, columns)
    if keys.id is None:
        ends = sorted({int(units[-1].id or 0) for units in files.values()})
        if len(ends) > 1:
            raise ValueError(f"--by-line requires files of one length. Got {ends} lines: pass --id-key to pair them.")
    elif keys.system is None and not options.one_system:
        read = {options.text_key, options.id_key, *(column.name for column in columns)}
        for path, units in files.items():
            check_one_system(path, units, read)
    systems: dict[str, RatedSets] = {}
    contexts: dict[str, str] = {}
    sources = []
    for name, path in options.files.items():
        for system in dict.fromkeys(unit.system for unit in files[path] if unit.id is not None):
            units = [unit for unit in files[path] if unit.system == system and unit.id is not None]
            sets = _rated(units)
            systems[name if system is None else system] = sets
            n_bad = sum(row.n_lines for unit in units for row in unit.bad)
            n_rows = n_bad + sum(len(unit.rows) for unit in units)
            sources.append(Origin(str(path), n_rows, n_bad, len(sets), sum(map(len, sets.values()))))
            for unit in units:
                context = unit.given.get("contexts")
                if context and contexts.setdefault(str(unit.id), context) != context:
                    raise ValueError(f"--context-key: the prompt {unit.id!r:.80} has two contexts.")
    people = None
    if options.people is not None:
        source = tables.get(options.people) or Source(options.people, **form)
        units = read_units(source, keys._replace(system=None))
        files[options.people] = units
        people = _rated(units)
    bad = []
    for path, units in files.items():
        bad_rows = chain.from_iterable(unit.bad for unit in units)
        for row in sorted(bad_rows, key=lambda row: row.number):
            lines = {"n_lines": row.n_lines} if row.n_lines > 1 else {}
            bad.append({"file": str(path), "row": row.number, "error": row.error, **lines})
    given = contexts if options.context_key else None
    has_classes = options.classes_key is not None
    inputs = pair_systems(systems, sources, bad, options.quality_key, people, given, has_classes, options.strip)
    if keys.id is None:
        return inputs
    if given is None:
        used = [options.text_key, options.system_key, *(column.name for column in columns)]
        of_systems = chain.from_iterable(files[path] for path in options.files.values())
        inputs = inputs._replace(context_column=find_context(of_systems, used))
    return inputs._replace(repeats=_find_repeats(files, keys.id))


def find_context(units: Iterable[Unit], used: Iterable[str | None]) -> str | None:
    """Return the first column of words that has one value for each prompt, and few of them twice; None without one."""
    used = set(used)
    values: dict[str, dict[str | None, Any]] = {}
    varying: set[str] = set()
    ids: set[str | None] = set()
    for unit in units:
        for row in unit.rows:
            ids.add(unit.id)
            for name, value in row.values.items() if isinstance(row.values, dict) else ():
                of_prompts = values.setdefault(name, {})
                if not isinstance(value, str) or of_prompts.setdefault(unit.id, value) != value:
                    varying.add(name)
    for name, of_prompts in values.items():
        is_complete = name not in varying and name not in used and len(of_prompts) == len(ids)
        is_different = 2 * len(set(of_prompts.values())) > len(ids) > 1
        if is_complete and is_different and np.median(word_counts(of_prompts.values())) >= WORDS_OF_PROMPT:
            return name
    return None


def _find_repeats(files: Mapping[Path, Sequence[Unit]], id_key: str) -> list[str]:
    """Describe likely faults in the rows of each file, a sentence each."""
    sentences = []
    for path, units in files.items():
        sentences += [f"{path}: {sentence}" for sentence in repeat_sentences(count_repeats(units), id_key)]
    return sentences


def read_units(source: Any, keys: Keys, columns: Sequence[Column] = ()) -> list[Unit]:
    """Read the sets of a file, or of a table, at least one of them good; a pipe is read once."""
    reader = Reader(keys, reads_sets=True, columns=columns, is_scattered=source.path.is_fifo())
    reader.prepare(source)
    units = list(reader.units(source))
    if not any(unit.texts for unit in units):
        bad = list(chain.from_iterable(unit.bad for unit in units))
        reason = f": {bad[0].error}" if bad else "."
        raise ValueError(f"{source.path}: no row can be used{reason}")
    return units


def _rated(units: Sequence[Unit]) -> RatedSets:
    sets: RatedSets = {}
    for unit in units:
        if unit.texts and unit.id is not None:
            ratings = unit.given.get("quality", [math.nan] * len(unit.texts))
            labels = unit.given.get("classes", [None] * len(unit.texts))
            sets.setdefault(unit.id, []).extend(map(RatedText, unit.texts, map(float, ratings), labels))
    return sets
