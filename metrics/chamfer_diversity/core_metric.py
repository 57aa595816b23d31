"""What the metrics share in front of `evaluate`: checks before its machinery, and a way round its files."""

from collections.abc import Callable, Mapping
from typing import Any

import datasets

from .core_inputs import parse_sets
from .core_trainer import TrainerMetric


class TextMetric:
    """Mixin for a metric over sets of texts; stands before `evaluate.Metric` among the bases.

    `evaluate` takes a string for a list of characters and fails on `[]` with a bare IndexError, so input is
    checked here first. A call that brings everything at once is scored in memory; what comes by `add` and
    `add_batch` is kept by `evaluate`, in files, across processes where there are several.

    It does not subclass `EvaluationModule`: `evaluate.load` takes the first such class that it finds.
    """

    # Defined by each metric.
    _compute: Callable[..., dict[str, Any]]
    # SETS, TEXTS or QUESTIONS of core_results.
    _items: str
    # Set by evaluate.EvaluationModule.
    writer: Any
    num_process: int
    _feature_names: Callable[[], list[str]]
    selected_feature_format: datasets.Features | None

    def compute(self, *, predictions: Any = None, references: Any = None, **kwargs: Any) -> dict[str, Any] | None:
        """Score `predictions`, with all that was added before.

        Args:
            predictions: the texts, or sets of texts, to score; None to score only what was added.
            references: what to compare them with, if the metric does; else not used, and there so that
                `evaluate.combine` can mix this metric with others.
            **kwargs: the settings below.

        Returns
        -------
            The result, or None on any process but the first.

        """
        stored = self.writer is not None
        if predictions is None and not stored:
            raise ValueError("predictions is None and nothing was added before: there is no text to score.")
        if not stored and self.num_process == 1:
            if "references" in self._feature_names():
                kwargs["references"] = references
            return self._compute(predictions=predictions, **kwargs)
        return super().compute(predictions=predictions, references=references, **kwargs)  # type: ignore[misc]

    def add_batch(self, *, predictions: Any = None, references: Any = None, **kwargs: Any) -> None:
        """Keep a batch of texts, or of sets of texts, for a later `compute`.

        Args:
            predictions: a list of texts, or a list of sets of texts: the same in all batches.
            references: what to compare them with, if the metric does; else not used.

        """
        super().add_batch(**self._canonical(predictions, references), **kwargs)  # type: ignore[misc]

    def _canonical(self, predictions: Any, references: Any) -> dict[str, Any]:
        """Check a batch and bring it to the form that `evaluate` stores: here, texts or sets of texts.

        A metric with other features overrides this.
        """
        sets = parse_sets(predictions)
        if self.selected_feature_format is not None:
            nested_before = not isinstance(self.selected_feature_format["predictions"], datasets.Value)
            if sets.nested != nested_before:
                forms = ("texts", "sets of texts")
                raise ValueError(
                    f"predictions must be alike in all batches. Got {forms[sets.nested]} after {forms[nested_before]}."
                )
        return {"predictions": [list(members) for members in predictions] if sets.nested else sets.texts}

    def add(self, *, prediction: Any = None, reference: Any = None, **kwargs: Any) -> None:
        """Keep one text, or one set of texts, for a later `compute`.

        Args:
            prediction: a text, or a set of texts: the same in all calls.
            reference: what to compare it with, if the metric does; else not used.

        """
        # CombinedEvaluations.add of evaluate 0.4.6 sends the one prediction under the plural name.
        prediction, reference = kwargs.pop("predictions", prediction), kwargs.pop("references", reference)
        self.add_batch(predictions=[prediction], references=[reference], **kwargs)

    def for_trainer(
        self,
        tokenizer: Any = None,
        /,
        set_size: int | None = None,
        group_by: str | None = None,
        prefix: str | None = None,
        **compute_kwargs: Any,
    ) -> TrainerMetric:
        """Make a `compute_metrics` for the Trainer of `transformers`, which scores what the model generates.

        Args:
            tokenizer: turns ids into texts; its first name is needed only where `compute` has a `tokenizer` too.
            set_size: number of generations in a set, such as `num_return_sequences`; all are one set by default.
            group_by: `"inputs"` or `"labels"`: generations for equal ones make a set.
            prefix: what the names of all results begin with.
            **compute_kwargs: settings of `compute`. Where it has references, they are read from the labels, or given
                as a mapping from the decoded inputs.

        Returns
        -------
            A function of an EvalPrediction, and of `compute_result` with `batch_eval_metrics=True`, to floats.

        """
        if tokenizer is None:
            tokenizer = compute_kwargs.pop("tokenizer", None)
        return TrainerMetric(self, tokenizer, self._items, set_size, group_by, prefix, compute_kwargs)

    def _n_items(self, result: Mapping[str, Any], name: str) -> int:
        """Count the items that a mean in a result was taken over: those that have a score."""
        return sum(score is not None for score in result["scores"])

    def _check_parts(self, settings: Mapping[str, Any]) -> None:
        """Refuse settings with which the score of the whole does not follow from those of parts."""
