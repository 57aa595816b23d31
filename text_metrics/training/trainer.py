"""A metric as a `compute_metrics` for the Trainer of `transformers`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from text_metrics.core_api import QUESTIONS, TEXTS, describe, parse_choice, parse_count
from text_metrics.stripping import Stripper
from text_metrics.training.common import (
    CONTEXTS,
    compute_of_sets,
    gather,
    name_numbers,
    read_metric,
    shared_context,
)


def for_trainer(
    metric: Any,
    tokenizer: Any,
    /,
    set_size: int | None = None,
    group_by: str | None = None,
    n_examples: int | None = None,
    strip: Any = None,
    **settings: Any,
) -> "TrainerMetric":
    """Make a `compute_metrics` for the Trainer of `transformers` that scores generations.

    Parameters
    ----------
    metric : a loaded metric, or its name; `probeval` reads people's answers from the labels
    tokenizer : decodes token ids
    set_size : number of generations in a set, such as `num_return_sequences`; all are one set by default
    group_by : "inputs" or "labels": generations whose inputs or labels are equal make a set
    n_examples : number of examples in the dataset; needed with several processes, which repeat some at the end
    strip : what is removed from generations before they are scored, because it is not the answer: "reasoning",
        "special" (tokens and chat markers), "prompt", which needs `contexts`, as a list or with commas between them
    **settings : of `compute`; `contexts` may be "inputs" or "labels", which must be equal in a set

    Returns
    -------
    TrainerMetric

    Raises
    ------
    TypeError, ValueError
        For arguments that are invalid or not known before training; when called, if predictions are not token ids, or
        do not fit the labels, the sets or `n_examples`.
    """
    stripper = Stripper(strip)
    if not hasattr(tokenizer, "batch_decode"):
        raise TypeError(f"tokenizer must have batch_decode, to turn ids into texts. Got {describe(tokenizer)}.")
    if group_by is not None:
        parse_choice(group_by, "group_by", ("inputs", "labels"))
        if set_size is not None:
            raise ValueError("set_size and group_by both say which generations make a set: pass one of them.")
    metric = read_metric(metric, settings, "for_trainer", (CONTEXTS,))
    contexts = settings.pop(CONTEXTS, None)
    if contexts is None and stripper.needs_prompts:
        raise ValueError("strip: 'prompt' requires contexts='inputs' or 'labels', the prompts of the generations.")
    if contexts is not None:
        parse_choice(contexts, CONTEXTS, ("inputs", "labels"))
    set_size = None if set_size is None else parse_count(set_size, "set_size")
    n_examples = None if n_examples is None else parse_count(n_examples, "n_examples")
    return TrainerMetric(metric, settings, contexts, tokenizer, set_size, group_by, n_examples, stripper)


@dataclass(eq=False)
class TrainerMetric:
    """A `compute_metrics` that `for_trainer` makes; `signature` is that of the last evaluation."""

    metric: Any
    settings: Mapping[str, Any]
    contexts: str | None
    tokenizer: Any
    set_size: int | None
    group_by: str | None
    n_examples: int | None
    strip: Stripper
    signature: str = ""
    # Of the batches of an evaluation so far.
    examples: list[dict[str, Any]] = field(default_factory=list)

    def __call__(self, prediction: Any, compute_result: bool = True) -> dict[str, float]:
        """Score an EvalPrediction; with `batch_eval_metrics`, all batches together after the last one.

        Returns a dict of floats, empty unless `compute_result`. A number for which lower is better or more diverse is
        also returned negated, as `neg_<name>`, for `metric_for_best_model`.
        """
        earlier = self.examples
        # After an error, the next evaluation begins.
        self.examples = []
        examples = earlier + self._read(prediction)
        if not compute_result:
            self.examples = examples
            return {}
        result = self._score(self._sets(self._without_repeats(examples)))
        self.signature = result["signature"]
        return name_numbers(self.metric, result)

    def _read(self, prediction: Any) -> list[dict[str, Any]]:
        """Return the texts of each example, its labels and, if the Trainer passes them, its inputs."""
        rows = _token_rows(prediction.predictions)
        labels = _token_rows(prediction.label_ids)
        n = len(labels)
        if not rows or not n or len(rows) % n:
            raise ValueError(
                "predictions must be of one number, at least 1, for each label: use Seq2SeqTrainer. "
                f"Got {len(rows)} for {n} labels."
            )
        each = len(rows) // n
        columns: dict[str, list[Any]] = {"labels": self._decode(labels)}
        if prediction.inputs is not None:
            # A batch has the inputs of the model.
            inputs = prediction.inputs
            inputs = _token_rows(inputs["input_ids"] if isinstance(inputs, Mapping) else inputs)
            if len(inputs) != n:
                raise ValueError(
                    f"inputs must be as many as labels. Got {len(inputs)} for {n}: in several processes, "
                    "batch_eval_metrics passes those of one."
                )
            # A decoder-only model repeats the prompt before its generation.
            for i, row in enumerate(rows):
                prompt = inputs[i // each]
                size = len(prompt)
                if len(row) > size and np.array_equal(row[:size], prompt):
                    rows[i] = row[size:]
            columns["inputs"] = self._decode(inputs)
        texts = self._decode(rows)
        columns["texts"] = [texts[i : i + each] for i in range(0, len(texts), each)]
        return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]

    def _decode(self, rows: list[np.ndarray]) -> list[str]:
        texts = self.tokenizer.batch_decode([row.tolist() for row in rows], skip_special_tokens=True)
        return [text.strip() for text in texts]

    def _without_repeats(self, examples: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the examples without those that are repeated to fill the last batch of several processes."""
        n = len(examples)
        processes, _ = gather(None)
        is_parallel = len(processes) > 1
        n_examples = self.n_examples or n
        is_wrong = self.n_examples is None if is_parallel else n > n_examples
        if is_wrong or n < n_examples:
            got = f"Got {self.n_examples} for predictions of {n}."
            raise ValueError(f"n_examples must be the number of examples in the dataset. {got}")
        return examples[:n_examples]

    def _sets(self, examples: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
        for name, column in (("group_by", self.group_by), (CONTEXTS, self.contexts)):
            if column is not None and column not in examples[0]:
                raise ValueError(f"{name}='inputs' needs include_for_metrics=['inputs'] in the Trainer's arguments.")
        if self.group_by is not None:
            groups: dict[str, list[dict[str, Any]]] = {}
            for example in examples:
                groups.setdefault(example[self.group_by], []).append(example)
            return list(groups.values())
        each = len(examples[0]["texts"])
        n_texts = each * len(examples)
        size = self.set_size or (each if self.metric.items == TEXTS else n_texts)
        # An example of several predictions is a set by itself.
        is_split = each not in (1, size) and self.set_size is not None
        if is_split or n_texts % size:
            raise ValueError(f"set_size must fit {len(examples)} examples of {each} predictions each. Got {size}.")
        step = size // each
        return [examples[start : start + step] for start in range(0, len(examples), step)]

    def _score(self, sets: list[list[dict[str, Any]]]) -> dict[str, Any]:
        texts = [list(chain.from_iterable(_values(examples, "texts"))) for examples in sets]
        given = dict(self.settings)
        if self.contexts is not None:
            given[CONTEXTS] = [shared_context(_values(examples, self.contexts)) for examples in sets]
        if self.metric.items == QUESTIONS:
            given["references"] = [_values(examples, "labels") for examples in sets]
        result = compute_of_sets(self.metric, self.strip.sets(texts, given.get(CONTEXTS)), given)
        return result | {"signature": self.strip.sign(result["signature"])}


def _values(examples: list[dict[str, Any]], name: str) -> list[Any]:
    return [example[name] for example in examples]


def _token_rows(value: Any) -> list[np.ndarray]:
    """Read token ids, (n, length), the first item if it is a tuple, as n rows without the -100 of padding."""
    value = value[0] if isinstance(value, tuple) and value else value
    ids = value.detach().cpu().numpy() if hasattr(value, "detach") else np.asarray(value)
    if ids.dtype.kind not in "iu" or ids.ndim != 2:
        raise TypeError(
            f"predictions, labels and inputs must be token ids, (n, length). Got {ids.dtype} of shape {ids.shape}: for "
            "logits, pass predict_with_generate=True to Seq2SeqTrainingArguments, or preprocess_logits_for_metrics."
        )
    return [row[row >= 0] for row in ids]
