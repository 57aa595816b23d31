"""The kernel that the settings of vendi_embed ask for."""

from typing import Any

from .core_encoder import embed_sets
from .core_inputs import TextSets
from .core_models import matrix_device
from .core_results import format_callable
from .core_similarity import Similarities, Source
from .core_spectra import row_error
from .vendi_embed_classes import make_classes
from .vendi_embed_kernels import ClassKernel, EmbeddingKernel, FunctionKernel, GivenKernel, Kernel, NgramKernel
from .vendi_embed_settings import VendiSettings
from .vendi_embed_weighting import Weighting


def make_kernel(
    sets: TextSets, weighting: Weighting, source: Source, settings: VendiSettings
) -> tuple[Kernel, dict[str, Any]]:
    """Compare the texts as the caller asks; returns the entries of a signature, too."""
    device, kernel = matrix_device(settings.device), settings.kernel
    if callable(kernel):
        vectors, signed = embed_sets(sets, settings.embeddings, settings)
        return FunctionKernel(sets.sizes, device, vectors, kernel), {"kernel": format_callable(kernel), **signed}
    if kernel == "embedding":
        compared, signed = source.compared(sets)
        if isinstance(compared, Similarities):
            return GivenKernel(device, compared.repaired()), signed
        error = row_error(signed.get("precision"))
        return EmbeddingKernel(sets.sizes, device, compared, error), {"kernel": "embedding", **signed}
    if kernel == "classes":
        rows = weighting.present(sets.sizes)
        classes, relation, signed = make_classes(sets, rows, settings, source)
        return ClassKernel(sets.sizes, rows, classes, relation), {"kernel": "classes", **signed}
    import nltk

    return NgramKernel(sets, device), {"kernel": "ngram", "tokenizer": f"nltk{nltk.__version__}"}
