"""The Vendi score of one set from its parts: the sum of the outer products of the unit vectors, d by d."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .core_encoder import embed_part
from .core_models import matrix_device
from .core_results import format_order
from .core_spectra import gram_sums, row_error, vendi_from_sums
from .core_statistics import Arrays, SetParts


class VendiParts(SetParts):
    """Gram sums of parts of a set."""

    def part(self, texts: list[str]) -> dict[str, np.ndarray]:
        """Sum the outer products of some texts: `sums`, of shape (d, d), and the `error` of the unit rows."""
        embeddings, signed = embed_part(texts, self.settings)
        sums = gram_sums(embeddings, device=matrix_device(self.settings.device))
        return {"sums": sums, "error": np.array(row_error(signed.get("precision")))}

    def merge(self, parts: Sequence[Arrays]) -> dict[str, np.ndarray]:
        """Add up the sums."""
        sums = np.sum([part["sums"] for part in parts], axis=0)
        return {"sums": sums, "error": np.max([part["error"] for part in parts])}

    def score(self, merged: Arrays, n: int) -> dict[str, Any]:
        """Score the set of n texts, as `compute` does."""
        orders = self.settings.orders
        scores = vendi_from_sums(merged["sums"], n, orders, float(merged["error"])).tolist()
        by_order = dict(zip(map(format_order, orders), scores, strict=True))
        return {"vendi_embed": scores[0], **({"by_order": by_order} if self.settings.has_orders else {})}
