"""A loaded metric as a `compute_metrics` for the Trainer of `transformers`, whole or batch by batch."""

import hashlib
import math
import re
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from .core_forks import one_thread
from .core_numbers import describe, parse_choice, parse_count, parse_flag
from .core_results import QUESTIONS, TEXTS, MergedResult, UnitSums, result_numbers

_GROUPS = ("inputs", "labels")


class _Group(NamedTuple):
    """Generations of one set, and the answers of people to the same examples."""

    question: str
    texts: list[str]
    gold: list[str]


class _Rows(NamedTuple):
    """The examples of one call, with `per_example` texts each."""

    texts: list[str]
    per_example: int
    gold: list[str]
    keys: list[bytes]
    questions: list[str]


def check_settings(metric: Any, given: Mapping[str, Any], caller: str) -> None:
    """Raise an error for a setting that is invalid, or that cannot be known before training."""
    declared = metric.settings.declared()
    for name in given:
        metric.settings.check_name(name, metric.name)
        reason = metric.settings.of_items(name) or ("a log holds numbers only" if declared[name].finer else None)
        if reason is not None:
            raise ValueError(f"{name} cannot be given to {caller}: {reason}.")
    metric.settings.read(given, metric.name)


class TrainerMetric:
    """A `compute_metrics` that decodes generations, groups them into sets and scores them.

    Called without `compute_result`, it scores everything at once. With `compute_result`, as `batch_eval_metrics=True`
    calls it, it scores the sets that each batch completes and keeps the sums; only incomplete sets stay in memory.

    Attributes
    ----------
    signature : signature of the last evaluation
    """

    def __init__(
        self,
        metric: Any,
        tokenizer: Any,
        set_size: int | None,
        group_by: str | None,
        prefix: str | None,
        settings: dict[str, Any],
    ) -> None:
        items = metric.items
        if not hasattr(tokenizer, "batch_decode"):
            raise TypeError(f"tokenizer must have batch_decode, to turn ids into texts. Got {describe(tokenizer)}.")
        if prefix is not None and not isinstance(prefix, str):
            raise TypeError(f"prefix must be a string. Got {describe(prefix)}.")
        self._references = settings.pop("references", None) if items == QUESTIONS else None
        check_settings(metric, settings, "for_trainer")
        if set_size is not None:
            set_size = parse_count(set_size, "set_size")
        if group_by is not None:
            parse_choice(group_by, "group_by", _GROUPS)
            if set_size is not None:
                raise ValueError("set_size and group_by both say which generations make a set: pass one of them.")
            if items == TEXTS and settings.get("confidence") is None:
                raise ValueError(
                    f"group_by has no effect without confidence: {metric.name} scores each text by itself, and only "
                    "its interval is over groups."
                )
        if self._references is not None and not isinstance(self._references, Mapping):
            raise TypeError(f"references must map each question to people's answers. Got {describe(self._references)}.")
        if self._references is not None and group_by != "inputs":
            raise ValueError("references are looked up by question: pass group_by='inputs' with them.")
        self._metric, self._tokenizer, self._items = metric, tokenizer, items
        self._set_size, self._group_by, self._settings = set_size, group_by, settings
        self._prefix = "" if prefix is None else f"{prefix}_"
        self._dataset_length: int | None = None
        self.signature: str | None = None
        self.reset()

    def reset(self) -> None:
        """Discard the batches of an interrupted evaluation."""
        self._open: dict[Any, _Group] = {}
        self._closed: set[bytes] = set()
        self._merged = MergedResult()
        # The sum and the number of the scores of each unit of the interval.
        self._units: dict[Any, tuple[float, int]] = {}
        # Whether texts that are scored by themselves belong together.
        self._has_units = False
        self._n_examples = 0
        self._n_texts = 0

    def __call__(self, prediction: Any, compute_result: bool | None = None) -> dict[str, float]:
        """Score an evaluation, or add a batch of it.

        Parameters
        ----------
        prediction : the Trainer's EvalPrediction
        compute_result : whether this batch is the last one; None for a whole evaluation

        Returns
        -------
        dict of floats; empty before the last batch

        Raises
        ------
        TypeError, ValueError
            If the predictions are not token ids, do not fit the labels or the sets, or may hold repeated examples.
        """
        ends = compute_result is None or parse_flag(compute_result, "compute_result")
        try:
            self._take(self._read(prediction, compute_result))
            done = self._close(everything=ends)
            if compute_result is None:
                result = self._score(done)
            else:
                self._score_part(done)
                result = self._finish() if ends else {}
        except BaseException:
            ends = True
            raise
        finally:
            if ends:
                self.reset()
        if not ends:
            return {}
        self.signature = result["signature"]
        return self._named(result)

    @property
    def callback(self) -> Any:
        """A TrainerCallback that records the length of the dataset, so that repeats at its end can be removed.

        It is needed with several processes, unless evaluation goes batch by batch.
        """
        from transformers import TrainerCallback

        def note(_: Any, *args: Any, eval_dataloader: Any = None, **kwargs: Any) -> None:
            self._dataset_length = _length(eval_dataloader)

        return type("DatasetLength", (TrainerCallback,), {"on_prediction_step": note})()

    # Reading.

    def _read(self, prediction: Any, compute_result: bool | None) -> _Rows:
        ids = _token_rows(prediction.predictions, "predictions")
        labels = None if prediction.label_ids is None else _token_rows(prediction.label_ids, "label_ids")
        given = getattr(prediction, "inputs", None)
        inputs = None if given is None else self._read_inputs(given, compute_result is not None)
        n_examples = len(ids) if labels is None else len(labels)
        per_example = self._count_per_example(len(ids), n_examples)
        n_kept = self._without_padding(n_examples, labels, inputs, compute_result)
        self._n_examples += n_kept
        ids = ids[: n_kept * per_example]
        labels = None if labels is None else labels[:n_kept]
        inputs = None if inputs is None else inputs[:n_kept]
        if inputs is not None:
            ids = [_without_prompt(row, inputs[i // per_example]) for i, row in enumerate(ids)]
        keys, questions = [], []
        if self._group_by is not None:
            by = inputs if self._group_by == "inputs" else labels
            if by is None:
                raise ValueError(
                    f"group_by={self._group_by!r}, but the Trainer does not pass {self._group_by}. "
                    "Set include_for_metrics=['inputs'] in its arguments."
                )
            keys = self._keys(by)
            if self._references is not None:
                questions = self._decode(by)
        gold = []
        if self._items == QUESTIONS and self._references is None:
            if labels is None:
                raise ValueError("label_ids is None: people's answers are read from the labels, or from references=.")
            gold = self._decode(labels)
        return _Rows(self._decode(ids), per_example, gold, keys, questions)

    def _read_inputs(self, given: Any, is_batch: bool) -> list[np.ndarray]:
        """Read the inputs; those of a batch hold the examples of this process only, and are gathered."""
        if not isinstance(given, Mapping):
            return _token_rows(given, "inputs")
        if "input_ids" not in given:
            raise ValueError(f"inputs has no 'input_ids', to tell the examples apart. It has {', '.join(given)}.")
        ids = given["input_ids"]
        if is_batch and count_processes() > 1:
            from accelerate.utils import gather, pad_across_processes

            ids = gather(pad_across_processes(ids, dim=1, pad_index=-100))
        return _token_rows(ids, "inputs")

    def _count_per_example(self, n_texts: int, n_examples: int) -> int:
        per_example = n_texts // n_examples if n_examples else 0
        if not per_example or n_texts % n_examples:
            raise ValueError(
                f"predictions has {n_texts} rows for {n_examples} labels: there must be the same number for each. The "
                "Trainer may have cut off generations of the last batch: Seq2SeqTrainer does not."
            )
        if self._set_size is not None and per_example not in (1, self._set_size):
            raise ValueError(
                f"set_size must be the number of generations of each example. Got set_size={self._set_size}, but "
                f"predictions has {n_texts} rows for {n_examples} labels: {per_example} for each."
            )
        return per_example

    def _without_padding(
        self,
        n_examples: int,
        labels: list[np.ndarray] | None,
        inputs: list[np.ndarray] | None,
        compute_result: bool | None,
    ) -> int:
        """Count the examples, without the repeats that complete the last batch of several processes."""
        n_processes = count_processes()
        if compute_result is None:
            length, self._dataset_length = self._dataset_length, None
            if n_processes == 1:
                return n_examples
            if length is not None:
                return min(n_examples, length)
            # The repeats are the first examples, and make the shares of all processes equal.
            columns = [self._keys(rows) for rows in (labels, inputs) if rows is not None]
            if n_examples % n_processes or (columns and not _ends_as_it_begins(list(zip(*columns, strict=True)))):
                return n_examples
            raise ValueError(
                f"predictions has {n_examples} examples of {n_processes} processes, and the last ones equal the first: "
                "they may be repeats in the last batch. Give the Trainer callbacks=[compute_metrics.callback]"
                ", which records the length of the dataset, or set batch_eval_metrics=True."
            )
        if not compute_result:
            return n_examples
        loader = _active_loader()
        length = _length(loader)
        if getattr(loader, "_drop_last", False):
            return n_examples
        if length is not None:
            n_left = length - self._n_examples
            if not 0 < n_left <= n_examples:
                raise ValueError(
                    f"predictions of {self._n_examples + n_examples} examples came in, but the dataset has {length}. "
                    "Call reset() after an interrupted evaluation."
                )
            return n_left
        if type(loader).__name__ == "DataLoaderDispatcher":
            # It reads for all processes, and records how many examples it read last.
            return min(n_examples, loader.remainder)
        if n_processes > 1:
            raise ValueError(
                f"predictions may hold repeats that complete the last batch of {n_processes} processes, and their "
                "number is unknown: the dataset has no length. Give it one, or set "
                "accelerator_config={'dispatch_batches': True}."
            )
        return n_examples

    def _keys(self, rows: list[np.ndarray]) -> list[bytes]:
        """Make keys that identify rows whatever their padding."""
        pad = getattr(self._tokenizer, "pad_token_id", None)
        unpadded = rows if pad is None else [row[row != pad] for row in rows]
        return [hashlib.blake2b(row.astype(np.int64).tobytes(), digest_size=16).digest() for row in unpadded]

    def _decode(self, rows: list[np.ndarray]) -> list[str]:
        texts = self._tokenizer.batch_decode([row.tolist() for row in rows], skip_special_tokens=True)
        return [text.strip() for text in texts]

    # Sets.

    def _take(self, rows: _Rows) -> None:
        """Add texts to the incomplete sets."""
        self._has_units = self._group_by is not None or max(self._set_size or 1, rows.per_example) > 1
        for i, text in enumerate(rows.texts):
            example, place = divmod(i, rows.per_example)
            if self._group_by is not None:
                key: Any = rows.keys[example]
                if key in self._closed and self._items != TEXTS:
                    raise ValueError(
                        f"group_by={self._group_by!r}: a group recurs after others (example {example} of the last "
                        "batch). With batch_eval_metrics=True, its examples must be consecutive."
                    )
            elif self._set_size is not None:
                key = self._n_texts // self._set_size
            else:
                # Texts that are scored by themselves belong together if they are of one example.
                key = self._n_texts // rows.per_example if self._items == TEXTS else 0
            question = rows.questions[example] if rows.questions else ""
            group = self._open.setdefault(key, _Group(question, [], []))
            group.texts.append(text)
            if rows.gold and place == 0:
                group.gold.append(rows.gold[example])
            self._n_texts += 1

    def _close(self, everything: bool) -> dict[Any, _Group]:
        """Remove and return the complete sets."""
        if self._items == TEXTS:
            done = dict(self._open)
        elif everything:
            if self._set_size is not None and self._n_texts % self._set_size:
                raise ValueError(
                    f"set_size must divide the number of predictions. Got set_size={self._set_size} for "
                    f"{self._n_texts} predictions."
                )
            done = dict(self._open)
        elif self._set_size is not None:
            done = {key: group for key, group in self._open.items() if len(group.texts) == self._set_size}
        else:
            # The last one may continue in the next batch.
            done = dict(list(self._open.items())[:-1])
        for key in done:
            del self._open[key]
        if self._group_by is not None:
            self._closed |= done.keys()
        return done

    # Scoring.

    def _score(self, groups: Mapping[Any, _Group]) -> dict[str, Any]:
        inputs: dict[str, Any] = {"predictions": [group.texts for group in groups.values()]}
        if self._items == TEXTS:
            sets = inputs["predictions"]
            inputs = {"predictions": [text for texts in sets for text in texts]}
            if self._has_units and self._settings.get("confidence") is not None:
                inputs["confidence_by"] = [unit for unit, texts in enumerate(sets) for _ in texts]
        elif self._items == QUESTIONS:
            inputs["references"] = self._answers(groups)
        with one_thread():
            return self._metric._compute(**inputs, **self._settings)

    def _answers(self, groups: Mapping[Any, _Group]) -> list[Any]:
        """Return people's answers to the question of each group."""
        gold: list[Any] = [group.gold for group in groups.values()]
        if self._references is not None:
            for group in groups.values():
                if group.question not in self._references:
                    raise ValueError(f"references has no answers to the question {describe(group.question)}.")
            gold = [self._references[group.question] for group in groups.values()]
        return gold

    def _score_part(self, groups: Mapping[Any, _Group]) -> None:
        if not groups:
            return
        self._metric.settings.read(self._settings, self._metric.name).check_batches()
        result = self._score(groups)
        self._merged.add(result, self._metric.n_items)
        if self._settings.get("confidence") is not None:
            keys = [key for key, group in groups.items() for _ in (group.texts if self._items == TEXTS else [group])]
            for key, score in zip(keys, result["scores"], strict=True):
                if score is not None:
                    total, count = self._units.get(key, (0.0, 0))
                    self._units[key] = (total + score, count + 1)

    def _finish(self) -> dict[str, Any]:
        result = self._merged.result()
        level = self._settings.get("confidence")
        if level is not None:
            sums, values = UnitSums(), np.array(list(self._units.values())).reshape(-1, 2)
            sums.add(values[:, 0], values[:, 1])
            result["confidence_interval"] = sums.estimate().interval(level, self._metric.bounds)
        return result

    def _named(self, result: Mapping[str, Any]) -> dict[str, float]:
        """Select the numbers and name them for a log; the metric's own is NaN if there was nothing to average.

        Decreasing ones are also named `neg_...`, negated: the Trainer keeps the checkpoint with the highest number.
        """
        named = {name: float(value) for name, value in result_numbers(result) if value is not None}
        named.setdefault(self._metric.name, math.nan)
        decreasing = [name for name in named if re.sub(r"_\d+$", "", name) in self._metric.decreasing]
        named |= {f"neg_{name}": -named[name] for name in decreasing}
        for name, value in result.items():
            if name.endswith("confidence_interval") and value is not None:
                stem = name.removesuffix("interval")
                named |= {f"{stem}low": value[0], f"{stem}high": value[1]}
        return {self._prefix + name: value for name, value in named.items()}


def _token_rows(value: Any, name: str) -> list[np.ndarray]:
    """Read token ids, (n, length), as n rows without the -100 of padding.

    The predictions are the first item of a tuple; a list holds those of several batches.
    """
    if isinstance(value, tuple):
        if not value:
            raise ValueError(f"{name} is an empty tuple.")
        return _token_rows(value[0], f"{name}[0]")
    if isinstance(value, list) and value and (isinstance(value[0], tuple) or getattr(value[0], "ndim", 1) == 2):
        return [row for i, part in enumerate(value) for row in _token_rows(part, f"{name}[{i}]")]
    ids = value.detach().cpu().numpy() if hasattr(value, "detach") else np.asarray(value)
    if ids.dtype.kind not in "iu":
        if ids.dtype.kind == "f":
            raise TypeError(
                f"{name} has floats of shape {ids.shape}: these are logits, not the ids of generated tokens. Pass "
                "predict_with_generate=True to Seq2SeqTrainingArguments, or preprocess_logits_for_metrics to the "
                "Trainer, to convert them to ids."
            )
        raise TypeError(f"{name} must be an array of token ids, (n, length). Got {describe(value)}.")
    if ids.ndim != 2:
        raise ValueError(f"{name} must have shape (n, length), a row of token ids for each text. Got {ids.shape}.")
    return [row[row >= 0] for row in ids]


def _without_prompt(row: np.ndarray, prompt: np.ndarray) -> np.ndarray:
    """Remove the prompt, which a decoder-only model repeats before its generation."""
    n = len(prompt)
    return row[n:] if len(row) > n and np.array_equal(row[:n], prompt) else row


def _ends_as_it_begins(examples: list[tuple[bytes, ...]]) -> bool:
    """Whether the last m examples equal the first m, for any m."""
    starts = (m for m in range(1, len(examples)) if examples[-m] == examples[0])
    return any(examples[-m:] == examples[:m] for m in starts)


def count_processes() -> int:
    """Count the processes of torch.distributed; 1 where it is not in use."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return 1
    return distributed.get_world_size()


def _active_loader() -> Any:
    """Return the loader of the current evaluation, which accelerate knows."""
    if "accelerate" not in sys.modules:
        return None
    from accelerate.state import GradientState

    state = GradientState()
    return state.active_dataloader if state.in_dataloader and state.end_of_dataloader else None


def _length(loader: Any) -> int | None:
    """Count the examples of a loader's dataset; None if it has no length, or only that of a shard."""
    dataset = getattr(loader, "dataset", None)
    data = sys.modules.get("torch.utils.data")
    if data is not None and isinstance(dataset, data.IterableDataset):
        return None
    try:
        return len(dataset)  # type: ignore[arg-type]
    except (TypeError, NotImplementedError):
        return None
