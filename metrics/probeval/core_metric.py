"""What the metrics share in front of `evaluate`: checks before its machinery, and a way round its files."""

from collections.abc import Callable
from typing import Any

import datasets

from .core_inputs import parse_sets


class TextMetric:
    """Mixin for a metric over sets of texts; stands before `evaluate.Metric` among the bases.

    `evaluate` takes a string for a list of characters and fails on `[]` with a bare IndexError, so input is
    checked here first. A call that brings everything at once is scored in memory; what comes by `add` and
    `add_batch` is kept by `evaluate`, in files, across processes where there are several.

    It does not subclass `EvaluationModule`: `evaluate.load` takes the first such class that it finds.
    """

    # Defined by each metric.
    _compute: Callable[..., dict[str, Any]]
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
