"""A metric as a `compute_metrics` for the Trainer of `transformers`, whole or batch by batch."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from text_metrics.metrics._core.core_numbers import describe, parse_choice, parse_count
from text_metrics.metrics._core.core_results import QUESTIONS, TEXTS, result_numbers
from text_metrics.training.common import gather, read_metric

_GROUPS = ("inputs", "labels")


def for_trainer(
    metric: Any,
    tokenizer: Any,
    /,
    set_size: int | None = None,
    group_by: str | None = None,
    prefix: str | None = None,
    n_examples: int | None = None,
    references: Mapping[str, Any] | None = None,
    **settings: Any,
) -> "TrainerMetric":
    """Make a `compute_metrics` for the Trainer of `transformers` that scores generations.

    Parameters
    ----------
    metric : a loaded metric, or its name
    tokenizer : decodes token ids
    set_size : number of generations in a set, such as `num_return_sequences`; all are one set by default
    group_by : "inputs" or "labels": generations whose inputs or labels are equal make a set
    prefix : put before the names of all results
    n_examples : number of examples in the dataset, needed with several processes, which repeat some to fill the last
        batch
    references : of `probeval`: people's answers by the decoded inputs, with `group_by="inputs"`; by default they are
        the labels
    **settings : of `compute`

    Returns
    -------
    A function from an EvalPrediction to a dict of floats; with `batch_eval_metrics=True`, it also takes
    `compute_result`. A number of which lower means better or more diverse is also returned negated, as `neg_<name>`,
    for `metric_for_best_model`.

    Raises
    ------
    TypeError, ValueError
        For arguments and settings that are invalid, or not known before training.
    """
    if not hasattr(tokenizer, "batch_decode"):
        raise TypeError(f"tokenizer must have batch_decode, to turn ids into texts. Got {describe(tokenizer)}.")
    metric = read_metric(metric, settings, "for_trainer")
    if group_by is not None:
        parse_choice(group_by, "group_by", _GROUPS)
        if set_size is not None:
            raise ValueError("set_size and group_by both say which generations make a set: pass one of them.")
    if references is not None:
        if metric.items != QUESTIONS or group_by != "inputs":
            raise ValueError("references are people's answers by question: they need probeval and group_by='inputs'.")
        if not isinstance(references, Mapping):
            raise TypeError(f"references must map each question to people's answers. Got {describe(references)}.")
    for name, value in (("set_size", set_size), ("n_examples", n_examples)):
        if value is not None:
            parse_count(value, name)
    prefix = "" if prefix is None else f"{prefix}_"
    return TrainerMetric(metric, tokenizer, set_size, group_by, prefix, n_examples, references, settings)


class _Example(NamedTuple):
    """The decoded generations for an example, its label and its input; None where the Trainer passes none."""

    texts: list[str]
    label: str | None
    input: str | None


@dataclass(eq=False)
class TrainerMetric:
    """A `compute_metrics` that decodes generations, groups them into sets and scores them: see `for_trainer`.

    Of the batches of `batch_eval_metrics=True` it keeps the texts, and scores them all with the last one.
    `signature` is that of the last evaluation.
    """

    metric: Any
    tokenizer: Any
    set_size: int | None
    group_by: str | None
    prefix: str
    n_examples: int | None
    references: Mapping[str, Any] | None
    settings: dict[str, Any]
    signature: str | None = None
    _examples: list[_Example] = field(default_factory=list)

    def reset(self) -> None:
        """Discard the batches of an interrupted evaluation."""
        self._examples = []

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
            If the predictions are not token ids, or do not fit the labels, the sets or `n_examples`.
        """
        try:
            self._examples += self._read(prediction, is_batch=compute_result is not None)
            if compute_result is False:
                return {}
            result = self._score(self._without_repeats())
        except BaseException:
            self.reset()
            raise
        self.reset()
        self.signature = result["signature"]
        return self._named(result)

    def _read(self, prediction: Any, is_batch: bool) -> list[_Example]:
        rows = _token_rows(prediction.predictions, "predictions")
        labels = None if prediction.label_ids is None else _token_rows(prediction.label_ids, "label_ids")
        given = getattr(prediction, "inputs", None)
        inputs = None if given is None else _read_inputs(given, is_batch)
        n = len(rows) if labels is None else len(labels)
        if not n or not rows or len(rows) % n or (inputs is not None and len(inputs) != n):
            raise ValueError(
                f"predictions has {len(rows)} rows for {n} labels: there must be the same number for each. The Trainer "
                "may have cut off generations of the last batch: Seq2SeqTrainer does not."
            )
        each = len(rows) // n
        if inputs is not None:
            rows = [_without_prompt(row, inputs[i // each]) for i, row in enumerate(rows)]
        texts = self._decode(rows)
        decoded = [[None] * n if ids is None else self._decode(ids) for ids in (labels, inputs)]
        return [_Example(texts[i * each : (i + 1) * each], *pair) for i, pair in enumerate(zip(*decoded, strict=True))]

    def _decode(self, rows: list[np.ndarray]) -> list[str]:
        texts = self.tokenizer.batch_decode([row.tolist() for row in rows], skip_special_tokens=True)
        return [text.strip() for text in texts]

    def _without_repeats(self) -> list[_Example]:
        """Return the examples without those that are repeated to fill the last batch of several processes."""
        n, n_processes = len(self._examples), len(gather(None)[0])
        if self.n_examples is None and n_processes > 1:
            raise ValueError(
                f"n_examples is None, but the last batch of {n_processes} processes may hold repeats: pass the number "
                "of examples in the dataset to for_trainer."
            )
        kept = n if self.n_examples is None else self.n_examples
        if n < kept or (n > kept and n_processes == 1):
            raise ValueError(
                f"n_examples is {kept}, but predictions for {n} examples came in. Call reset() after an interrupted "
                "evaluation."
            )
        return self._examples[:kept]

    def _score(self, examples: list[_Example]) -> dict[str, Any]:
        sets = self._sets(examples)
        texts = [members for members, _ in sets]
        if self.metric.items == TEXTS:
            is_grouped = self.settings.get("confidence") is not None and len(texts) < sum(map(len, texts))
            grouped = {"confidence_by": [i for i, members in enumerate(texts) for _ in members]} if is_grouped else {}
            flat = [text for members in texts for text in members]
            return self.metric.compute(predictions=flat, **grouped, **self.settings)
        if self.metric.items == QUESTIONS:
            answers = [self._answers(of_set) for _, of_set in sets]
            return self.metric.compute(predictions=texts, references=answers, **self.settings)
        return self.metric.compute(predictions=texts, **self.settings)

    def _sets(self, examples: list[_Example]) -> list[tuple[list[str], list[_Example]]]:
        """Return the texts of each set, and the examples that they are of."""
        if self.group_by is not None:
            groups: dict[str, list[_Example]] = {}
            for example in examples:
                key = example.input if self.group_by == "inputs" else example.label
                if key is None:
                    raise ValueError(
                        f"group_by={self.group_by!r}, but the Trainer does not pass {self.group_by}. Set "
                        "include_for_metrics=['inputs'] in its arguments."
                    )
                groups.setdefault(key, []).append(example)
            return [([text for example in group for text in example.texts], group) for group in groups.values()]
        texts = [text for example in examples for text in example.texts]
        each = len(examples[0].texts)
        size = self.set_size or (each if self.metric.items == TEXTS else len(texts))
        if len(texts) % size or (self.set_size and each not in (1, size)):
            raise ValueError(
                f"set_size must divide the number of predictions, and be that of each example. Got set_size={size} for "
                f"{len(texts)} predictions, {each} for each example."
            )
        starts = range(0, len(texts), size)
        return [(texts[i : i + size], examples[i // each : (i + size) // each]) for i in starts]

    def _answers(self, examples: list[_Example]) -> Any:
        """Return people's answers to the question of a set."""
        if self.references is None:
            if examples[0].label is None:
                raise ValueError("label_ids is None: people's answers are read from the labels, or from references=.")
            return [example.label for example in examples]
        question = examples[0].input
        if question is None or question not in self.references:
            raise ValueError(f"references has no answers to the question {describe(question)}.")
        return self.references[question]

    def _named(self, result: Mapping[str, Any]) -> dict[str, float]:
        """Select the numbers and name them for a log; the metric's own is NaN if there was nothing to average.

        Decreasing ones are also named `neg_...`, negated: the Trainer keeps the checkpoint with the highest number.
        """
        named = {name: float(value) for name, value in result_numbers(result) if value is not None}
        named.setdefault(self.metric.name, math.nan)
        for name, value in result.items():
            if name.endswith("confidence_interval") and value is not None:
                stem = name.removesuffix("interval")
                named |= {f"{stem}low": value[0], f"{stem}high": value[1]}
        decreasing = [name for name in named if re.sub(r"_\d+$", "", name) in self.metric.decreasing]
        named |= {f"neg_{name}": -named[name] for name in decreasing}
        return {self.prefix + name: value for name, value in named.items()}


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
    if ids.dtype.kind == "f":
        raise TypeError(
            f"{name} has floats of shape {ids.shape}: these are logits, not the ids of generated tokens. Pass "
            "predict_with_generate=True to Seq2SeqTrainingArguments, or preprocess_logits_for_metrics to the Trainer."
        )
    if ids.dtype.kind not in "iu" or ids.ndim != 2:
        raise ValueError(f"{name} must be an array of token ids, (n, length). Got {describe(value)}.")
    return [row[row >= 0] for row in ids]


def _read_inputs(given: Any, is_batch: bool) -> list[np.ndarray]:
    """Read the inputs; those of a batch hold the examples of this process only, and are gathered."""
    if not isinstance(given, Mapping):
        return _token_rows(given, "inputs")
    if "input_ids" not in given:
        raise ValueError(f"inputs has no 'input_ids', to tell the examples apart. It has {', '.join(given)}.")
    rows = _token_rows(given["input_ids"], "inputs")
    return [row for part in gather(rows)[0] for row in part] if is_batch else rows


def _without_prompt(row: np.ndarray, prompt: np.ndarray) -> np.ndarray:
    """Remove the prompt, which a decoder-only model repeats before its generation."""
    n = len(prompt)
    return row[n:] if len(row) > n and np.array_equal(row[:n], prompt) else row
