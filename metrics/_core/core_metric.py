"""The mixin of all metrics: input checks before `evaluate` runs, and scoring in memory."""

import inspect
import os
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

import datasets
import evaluate
import numpy as np

from .core_inputs import TextSets, parse_sets
from .core_intervals import Bounds, ScoreSummary, parse_confidence_by
from .core_results import SETS, ItemResult, format_sizes, signature
from .core_settings import SetSettings, Settings

# Each metric has its own copy of this file, so a fork is noted outside all of them.
_NOTE: Any = sys.modules.setdefault("_text_metric_fork", types.ModuleType("_text_metric_fork"))
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: setattr(_NOTE, "is_forked", True))


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread if this process was forked after a metric was loaded.

    OpenMP and tokenizers would wait forever for threads that a forked process does not have.
    """
    torch: Any = sys.modules.get("torch")
    if torch is None or not hasattr(_NOTE, "is_forked"):
        yield
        return
    n_threads = torch.get_num_threads()
    tokenizers = os.environ.get("TOKENIZERS_PARALLELISM")
    torch.set_num_threads(1)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    # It comes with scikit-learn, whose clustering uses OpenMP too.
    pools: Any = sys.modules.get("threadpoolctl")
    try:
        with pools.threadpool_limits(1) if pools else nullcontext():
            yield
    finally:
        torch.set_num_threads(n_threads)
        del os.environ["TOKENIZERS_PARALLELISM"]
        if tokenizers is not None:
            os.environ["TOKENIZERS_PARALLELISM"] = tokenizers


class TextMetric:
    """Mixin for a metric of texts; it precedes `evaluate.Metric` among the bases.

    `evaluate` takes a string for a list of characters and fails on `[]` with a bare IndexError, so input is checked
    here first. A call with all its input is scored in memory. `evaluate` stores in files what is passed to `add` and
    `add_batch`, and gathers it over processes.

    It does not subclass `EvaluationModule`: `evaluate.load` takes the first such class that it finds.

    A metric may also have methods for questions that calls of `compute` would answer too slowly: `entropies`,
    `score_without_each`, `has_sums` with `sum_up` and `score_sums`; see `vendi_embed`. `found` goes with `entropies` of
    parts that are found in the whole set first, such as classes; see `semantic_entropy`.
    """

    # Defined by each metric: SETS, TEXTS or QUESTIONS of core_results, and the range of the score.
    items: str
    bounds: Bounds
    settings: type[Settings]
    # Its results with an entry for each item, besides `scores`.
    item_results: tuple[ItemResult, ...] = ()
    _compute: Callable[..., dict[str, Any]]
    # Results for which lower is better or more diverse, without the suffix of the order.
    decreasing: tuple[str, ...] = ()
    # Numbers that are the largest of all items; the other numbers with a fraction are means.
    maxima: tuple[str, ...] = ()
    # Set by evaluate.EvaluationModule.
    name: str
    config_name: str
    data_dir: str
    _data_dir_root: str
    writer: Any
    inputs_description: str
    num_process: int
    _feature_names: Callable[[], list[str]]
    selected_feature_format: datasets.Features | None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # evaluate makes a copy of each method for each instance, and appends the help of the metric to its docstring.
        methods: tuple[Any, ...] = (self.compute, self.add, self.add_batch)
        for method in methods:
            shared = inspect.getdoc(getattr(TextMetric, method.__name__))
            method.__func__.__doc__ = f"{shared}\n{self.inputs_description}"
        methods[0].__func__.__signature__ = self._signature()

    def _build_data_dir(self) -> str:
        """Return the folder of what is added, which is needed for that only: a call is scored in memory."""
        with suppress(OSError):
            return super()._build_data_dir()  # type: ignore[misc]
        return os.path.join(self._data_dir_root, self.name, self.config_name)

    def _describe(
        self, description: str, citation: str, arguments: str, urls: list[str], stored: dict[str, Any] | None = None
    ) -> evaluate.MetricInfo:
        """Make the description that `evaluate` shows; by default, sets of texts or texts are stored."""
        text = datasets.Value("string")
        features = [datasets.Features(predictions=form) for form in (datasets.Sequence(text), text)]
        return evaluate.MetricInfo(
            description=description,
            citation=citation,
            inputs_description=arguments,
            features=datasets.Features(stored) if stored else features,
            reference_urls=urls,
        )

    def _download_and_prepare(self, dl_manager: Any) -> None:
        """Bring data files beside the copy of the code that `evaluate` makes; it calls this at load."""
        self.settings.prepare()

    def _signature(self) -> inspect.Signature:
        shared = inspect.signature(TextMetric.compute)
        names = ("self", *self._feature_names())
        inputs = [parameter for name, parameter in shared.parameters.items() if name in names]
        settings = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=declared.default)
            for name, declared in self.settings.declared().items()
        ]
        return shared.replace(parameters=[*inputs, *settings])

    def compute(self, *, predictions: Any = None, references: Any = None, **kwargs: Any) -> dict[str, Any] | None:
        """Score `predictions`, if any, together with everything added before.

        Returns the result, or None on any process but the first.
        """
        stored = self.writer is not None
        if predictions is None and not stored:
            self.settings.read(kwargs, self.name)
            raise ValueError("predictions is None and nothing was added before.")
        compared = {"references": references} if "references" in self._feature_names() else {}
        with one_thread():
            if not stored and self.num_process == 1:
                return self._compute(predictions=predictions, **compared, **kwargs)
            # evaluate discards what was added once it calls `_compute`, also if that fails.
            self.settings.read(kwargs, self.name).check_found()
            return super().compute(predictions=predictions, references=references, **kwargs)  # type: ignore[misc]

    def add_batch(self, *, predictions: Any = None, references: Any = None, **kwargs: Any) -> None:
        """Keep a batch for a later `compute`, whose help follows.

        Args:
            predictions: as for `compute`, in the same form in all batches.
            references: as for `compute`, in a metric that has them; otherwise unused.
        """
        batch = self._canonical(predictions, references)
        try:
            super().add_batch(**batch, **kwargs)  # type: ignore[misc]
        except OSError as error:
            problem = f"batches cannot be stored in {self.data_dir} ({error.strerror or error})"
            raise ValueError(f"{problem}: set HF_HOME to another folder, or pass all texts to compute.") from error

    def _canonical(self, predictions: Any, references: Any) -> dict[str, Any]:
        """Check a batch and convert it to what `evaluate` stores: here, texts or sets of texts.

        A metric with other features overrides this.
        """
        sets = parse_sets(predictions)
        if self.selected_feature_format is not None:
            nested_before = not isinstance(self.selected_feature_format["predictions"], datasets.Value)
            if sets.nested != nested_before:
                forms = ("texts", "sets of texts")
                got = f"{forms[sets.nested]} after {forms[nested_before]}"
                raise ValueError(f"predictions must have one form in all batches. Got {got}.")
        return {"predictions": [list(members) for members in predictions] if sets.nested else sets.texts}

    def add(self, *, prediction: Any = None, reference: Any = None, **kwargs: Any) -> None:
        """Keep one text, set of texts or question for a later `compute`, whose help follows.

        Args:
            prediction: an entry of the predictions of `compute`, in the same form in all calls.
            reference: an entry of its references, in a metric that has them; otherwise unused.
        """
        # CombinedEvaluations.add of evaluate 0.4.6 passes the single prediction under the plural name.
        prediction = kwargs.pop("predictions", prediction)
        reference = kwargs.pop("references", reference)
        self.add_batch(predictions=[prediction], references=[reference], **kwargs)

    def bounds_under(self, settings: Settings) -> Bounds:
        """Return the range of the score under some settings, which a metric may override."""
        return self.bounds

    def results_under(self, settings: Settings) -> list[ItemResult]:
        """List the results that have an entry for each item under some settings; `scores` comes first."""
        passed = settings.passed().keys()
        results = [result for result in self.item_results if passed >= set(result.needs)]
        return [ItemResult("scores", bounds=self.bounds_under(settings)), *results]

    def n_items(self, result: Mapping[str, Any], name: str) -> int:
        """Count the items with a score, over which a mean in a result was taken."""
        return sum(score is not None for score in result.get(f"{name}_scores", result["scores"]))


class SetMetric(TextMetric):
    """Mixin for a metric that scores sets of texts.

    `_score` maps sets, settings and how scores are summed up to results and the entries of the metric in a signature.
    """

    items = SETS
    settings: type[SetSettings]
    _score: Callable[[TextSets, Any, ScoreSummary], tuple[dict[str, Any], dict[str, Any]]]

    def _compute(self, *, predictions: Any, **given: Any) -> dict[str, Any]:
        settings = self.settings.read(given, self.name)
        sets = parse_sets(predictions, settings.set_size)
        units = parse_confidence_by(settings.confidence_by, len(sets.sizes), "set")
        summary = ScoreSummary(units, settings.confidence, self.bounds_under(settings), sets.sizes)
        result, signed = self._score(sets, settings, summary)
        return self._signed(result, signed, sets.sizes, settings)

    def _signed(
        self, result: dict[str, Any], signed: Mapping[str, Any], sizes: np.ndarray, settings: SetSettings
    ) -> dict[str, Any]:
        """Add the signature to a result for sets of these sizes; `signed` are the entries of the metric."""
        text = signature(self.name, **signed, set_size=format_sizes(sizes), **settings.signed_interval())
        return result | {"signature": text}
