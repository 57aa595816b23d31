"""Names of the metrics that the package may use: of their core, and of single metrics. All others are private.

A name is imported at its first use, so that a command loads no model and no library that it does not need.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from text_metrics.metrics._core.core_content import find_encoder as find_encoder
    from text_metrics.metrics._core.core_encoder import EmbeddedSetSettings as EmbeddedSetSettings
    from text_metrics.metrics._core.core_encoder import EncoderSettings as EncoderSettings
    from text_metrics.metrics._core.core_encoder import embed_sets as embed_sets
    from text_metrics.metrics._core.core_encoder import encode as encode
    from text_metrics.metrics._core.core_encoder import is_other_script as is_other_script
    from text_metrics.metrics._core.core_encoder import unit_rows as unit_rows
    from text_metrics.metrics._core.core_inputs import LIMITS as LIMITS
    from text_metrics.metrics._core.core_inputs import TextSets as TextSets
    from text_metrics.metrics._core.core_inputs import as_list as as_list
    from text_metrics.metrics._core.core_inputs import batches_by_size as batches_by_size
    from text_metrics.metrics._core.core_inputs import content_ranks as content_ranks
    from text_metrics.metrics._core.core_inputs import flatten as flatten
    from text_metrics.metrics._core.core_inputs import lists_by_set as lists_by_set
    from text_metrics.metrics._core.core_inputs import mean_by_set as mean_by_set
    from text_metrics.metrics._core.core_inputs import number_labels as number_labels
    from text_metrics.metrics._core.core_inputs import parse_context_rows as parse_context_rows
    from text_metrics.metrics._core.core_inputs import parse_contexts as parse_contexts
    from text_metrics.metrics._core.core_inputs import parse_embeddings as parse_embeddings
    from text_metrics.metrics._core.core_inputs import parse_probabilities as parse_probabilities
    from text_metrics.metrics._core.core_inputs import parse_sets as parse_sets
    from text_metrics.metrics._core.core_inputs import parse_values as parse_values
    from text_metrics.metrics._core.core_inputs import split_list as split_list
    from text_metrics.metrics._core.core_language import find_unread as find_unread
    from text_metrics.metrics._core.core_metric import one_thread as one_thread
    from text_metrics.metrics._core.core_models import DEFAULT_MODEL as DEFAULT_MODEL
    from text_metrics.metrics._core.core_models import TRANSFORMER as TRANSFORMER
    from text_metrics.metrics._core.core_models import find_device as find_device
    from text_metrics.metrics._core.core_models import find_model as find_model
    from text_metrics.metrics._core.core_models import matrix_device as matrix_device
    from text_metrics.metrics._core.core_models import quiet_loading as quiet_loading
    from text_metrics.metrics._core.core_ngrams import is_unspaced as is_unspaced
    from text_metrics.metrics._core.core_numbers import ROUNDING as ROUNDING
    from text_metrics.metrics._core.core_numbers import ROW_ERRORS as ROW_ERRORS
    from text_metrics.metrics._core.core_numbers import TIE as TIE
    from text_metrics.metrics._core.core_numbers import describe as describe
    from text_metrics.metrics._core.core_numbers import first_line as first_line
    from text_metrics.metrics._core.core_numbers import first_maximum as first_maximum
    from text_metrics.metrics._core.core_numbers import float_type as float_type
    from text_metrics.metrics._core.core_numbers import parse_choice as parse_choice
    from text_metrics.metrics._core.core_numbers import parse_count as parse_count
    from text_metrics.metrics._core.core_numbers import parse_flag as parse_flag
    from text_metrics.metrics._core.core_numbers import parse_level as parse_level
    from text_metrics.metrics._core.core_numbers import parse_number as parse_number
    from text_metrics.metrics._core.core_numbers import tied_ranks as tied_ranks
    from text_metrics.metrics._core.core_numbers import to_array as to_array
    from text_metrics.metrics._core.core_numbers import unit_vectors as unit_vectors
    from text_metrics.metrics._core.core_pairs import is_pair_model as is_pair_model
    from text_metrics.metrics._core.core_results import QUESTIONS as QUESTIONS
    from text_metrics.metrics._core.core_results import SETS as SETS
    from text_metrics.metrics._core.core_results import TEXTS as TEXTS
    from text_metrics.metrics._core.core_results import UNBOUNDED as UNBOUNDED
    from text_metrics.metrics._core.core_results import VERSION as VERSION
    from text_metrics.metrics._core.core_results import Bounds as Bounds
    from text_metrics.metrics._core.core_results import Estimate as Estimate
    from text_metrics.metrics._core.core_results import ItemResult as ItemResult
    from text_metrics.metrics._core.core_results import ScoreSummary as ScoreSummary
    from text_metrics.metrics._core.core_results import Signature as Signature
    from text_metrics.metrics._core.core_results import caller_name as caller_name
    from text_metrics.metrics._core.core_results import format_sizes as format_sizes
    from text_metrics.metrics._core.core_results import mean_estimate as mean_estimate
    from text_metrics.metrics._core.core_results import parse_confidence_by as parse_confidence_by
    from text_metrics.metrics._core.core_results import ratio_estimate as ratio_estimate
    from text_metrics.metrics._core.core_results import result_numbers as result_numbers
    from text_metrics.metrics._core.core_results import result_values as result_values
    from text_metrics.metrics._core.core_results import rows_of as rows_of
    from text_metrics.metrics._core.core_results import signature as signature
    from text_metrics.metrics._core.core_settings import CALL as CALL
    from text_metrics.metrics._core.core_settings import ITEM as ITEM
    from text_metrics.metrics._core.core_settings import PAIR as PAIR
    from text_metrics.metrics._core.core_settings import TEXT as TEXT
    from text_metrics.metrics._core.core_settings import Declared as Declared
    from text_metrics.metrics._core.core_settings import Settings as Settings
    from text_metrics.metrics._core.core_settings import setting as setting
    from text_metrics.metrics._core.core_settings import suggest as suggest
    from text_metrics.metrics._core.core_spectra import eigenvalue_shares as eigenvalue_shares
    from text_metrics.metrics._core.core_spectra import gram_sums as gram_sums
    from text_metrics.metrics._core.core_spectra import second_moments as second_moments
    from text_metrics.metrics._core.core_spectra import spectra_from_sums as spectra_from_sums
    from text_metrics.metrics._core.core_spectra import vendi_score as vendi_score
    from text_metrics.metrics._core.core_warnings import warn as warn
    from text_metrics.metrics._core.core_windows import token_batches as token_batches
    from text_metrics.metrics.probeval.probeval_formats import WRONG as WRONG
    from text_metrics.metrics.probeval.probeval_formats import count_answers as count_answers
    from text_metrics.metrics.probeval.probeval_formats import pair_rows as pair_rows
    from text_metrics.metrics.probeval.probeval_formats import parse_row as parse_row
    from text_metrics.metrics.probeval.probeval_protoqa import ranked_scores as ranked_scores
    from text_metrics.metrics.probeval.probeval_released import parse_target as parse_target
    from text_metrics.metrics.probeval.probeval_released import read_answers as read_answers
    from text_metrics.metrics.probeval.probeval_released import warn_of_unclustered as warn_of_unclustered
    from text_metrics.metrics.probeval.probeval_sampling import kl_divergence as kl_divergence
    from text_metrics.metrics.probeval.probeval_sampling import smooth as smooth
    from text_metrics.metrics.probeval.probeval_words import fold as fold
    from text_metrics.metrics.probeval.probeval_words import normalize as normalize
    from text_metrics.metrics.self_bleu.self_bleu_tokenizers import WHITESPACE as WHITESPACE
    from text_metrics.metrics.self_bleu.self_bleu_tokenizers import tokenize as tokenize
    from text_metrics.metrics.semantic_entropy.semantic_entropy_settings import (
        SemanticEntropySettings as SemanticEntropySettings,
    )
    from text_metrics.metrics.vendi_embed.vendi_embed_results import name_results as name_results

# The names by their modules in text_metrics.metrics.
_MODULES = {
    "_core.core_content": ("find_encoder",),
    "_core.core_encoder": (
        "EmbeddedSetSettings",
        "EncoderSettings",
        "embed_sets",
        "encode",
        "is_other_script",
        "unit_rows",
    ),
    "_core.core_inputs": (
        "LIMITS",
        "TextSets",
        "as_list",
        "batches_by_size",
        "content_ranks",
        "flatten",
        "lists_by_set",
        "mean_by_set",
        "number_labels",
        "parse_context_rows",
        "parse_contexts",
        "parse_embeddings",
        "parse_probabilities",
        "parse_sets",
        "parse_values",
        "split_list",
    ),
    "_core.core_language": ("find_unread",),
    "_core.core_metric": ("one_thread",),
    "_core.core_models": (
        "DEFAULT_MODEL",
        "TRANSFORMER",
        "find_device",
        "find_model",
        "matrix_device",
        "quiet_loading",
    ),
    "_core.core_ngrams": ("is_unspaced",),
    "_core.core_numbers": (
        "ROUNDING",
        "ROW_ERRORS",
        "TIE",
        "describe",
        "first_line",
        "first_maximum",
        "float_type",
        "parse_choice",
        "parse_count",
        "parse_flag",
        "parse_level",
        "parse_number",
        "tied_ranks",
        "to_array",
        "unit_vectors",
    ),
    "_core.core_pairs": ("is_pair_model",),
    "_core.core_results": (
        "Bounds",
        "Estimate",
        "ItemResult",
        "QUESTIONS",
        "SETS",
        "ScoreSummary",
        "Signature",
        "TEXTS",
        "UNBOUNDED",
        "VERSION",
        "caller_name",
        "format_sizes",
        "mean_estimate",
        "parse_confidence_by",
        "ratio_estimate",
        "result_numbers",
        "result_values",
        "rows_of",
        "signature",
    ),
    "_core.core_settings": (
        "CALL",
        "Declared",
        "ITEM",
        "PAIR",
        "Settings",
        "TEXT",
        "setting",
        "suggest",
    ),
    "_core.core_spectra": (
        "eigenvalue_shares",
        "gram_sums",
        "second_moments",
        "spectra_from_sums",
        "vendi_score",
    ),
    "_core.core_warnings": ("warn",),
    "_core.core_windows": ("token_batches",),
    "probeval.probeval_formats": (
        "WRONG",
        "count_answers",
        "pair_rows",
        "parse_row",
    ),
    "probeval.probeval_protoqa": ("ranked_scores",),
    "probeval.probeval_released": (
        "parse_target",
        "read_answers",
        "warn_of_unclustered",
    ),
    "probeval.probeval_sampling": (
        "kl_divergence",
        "smooth",
    ),
    "probeval.probeval_words": (
        "fold",
        "normalize",
    ),
    "self_bleu.self_bleu_tokenizers": (
        "WHITESPACE",
        "tokenize",
    ),
    "semantic_entropy.semantic_entropy_settings": ("SemanticEntropySettings",),
    "vendi_embed.vendi_embed_results": ("name_results",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = list(_MODULE_OF)


def __getattr__(name: str) -> Any:
    """Import a name at its first use."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"text_metrics.metrics.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value
