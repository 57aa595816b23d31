"""Names of the metrics that the package may use: of their core, and of single metrics. All others are private.

Those whose module imports what takes long are imported at their first use.
"""

from importlib import import_module
from typing import Any

from text_metrics.metrics._core.core_content import find_encoder
from text_metrics.metrics._core.core_encoder import EmbeddedSetSettings, EncoderSettings, is_other_script
from text_metrics.metrics._core.core_inputs import (
    LIMITS,
    TextSets,
    as_list,
    batches_by_size,
    content_ranks,
    flatten,
    lists_by_set,
    mean_by_set,
    number_labels,
    owners_of,
    parse_sets,
    parse_values,
    split_list,
)
from text_metrics.metrics._core.core_intervals import (
    UNBOUNDED,
    Bounds,
    Estimate,
    ScoreSummary,
    mean_estimate,
    parse_confidence_by,
    ratio_estimate,
)
from text_metrics.metrics._core.core_language import find_unread
from text_metrics.metrics._core.core_models import DEFAULT_MODEL, TRANSFORMER, find_device, find_model, quiet_loading
from text_metrics.metrics._core.core_ngrams import is_unspaced
from text_metrics.metrics._core.core_numbers import (
    ROUNDING,
    TIE,
    describe,
    first_line,
    first_maximum,
    parse_choice,
    parse_count,
    parse_flag,
    parse_level,
    parse_number,
    tied_ranks,
    unit_vectors,
)
from text_metrics.metrics._core.core_results import (
    QUESTIONS,
    SETS,
    TEXTS,
    VERSION,
    ItemResult,
    Signature,
    caller_name,
    format_sizes,
    result_numbers,
    result_values,
    rows_of,
    signature,
)
from text_metrics.metrics._core.core_settings import CALL, ITEM, PAIR, TEXT, Settings, scale_shares, setting, suggest
from text_metrics.metrics._core.core_warnings import warn
from text_metrics.metrics._core.core_windows import token_batches

# By module, the names that are imported at their first use.
_LAZY = {
    "_core.core_metric": ("one_thread",),
    "probeval.probeval_formats": ("WRONG", "count_answers", "pair_rows", "parse_row"),
    "probeval.probeval_protoqa": ("ranked_scores",),
    "probeval.probeval_released": ("parse_target", "read_answers", "warn_of_unclustered"),
    "probeval.probeval_sampling": ("kl_divergence", "smooth"),
    "probeval.probeval_words": ("fold", "normalize"),
    "self_bleu.self_bleu_tokenizers": ("WHITESPACE", "tokenize"),
    "semantic_entropy.semantic_entropy_settings": ("SemanticEntropySettings",),
}
_MODULE_OF = {name: module for module, names in _LAZY.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a name at its first use."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"text_metrics.metrics.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value
