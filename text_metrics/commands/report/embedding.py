"""The different texts of a report, each embedded once, and what the encoder cannot read of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from text_metrics.commands.report.command import ReportCommand
from text_metrics.metrics._core.core_encoder import EncoderSettings, encode, load_encoder
from text_metrics.metrics._core.core_inputs import parse_embeddings, parse_sets
from text_metrics.metrics._core.core_tokens import count_tokens
from text_metrics.metrics.semantic_entropy.semantic_entropy_settings import SemanticEntropySettings

# Texts embedded and kept together: a killed process loses at most these.
_TEXTS_AT_ONCE = 1000


@dataclass(frozen=True)
class Encoder:
    """The encoder of a report: its settings as metrics take them, and which texts say the same by semantic_entropy."""

    settings: dict[str, Any]
    meaning: dict[str, Any]
    quiet: bool

    @classmethod
    def of(cls, command: ReportCommand) -> "Encoder":
        """Make the encoder that a command names."""
        settings = dict(command.settings)
        meaning = {"same": settings.pop("same")} if "same" in settings else {}
        return cls({**settings, "cache_dir": str(command.embeddings)}, meaning, command.quiet)

    def check(self) -> None:
        """Raise an error, before anything is computed, for a setting that is invalid or a model that is missing."""
        SemanticEntropySettings(**self.settings, **self.meaning).check_found()

    def read(self) -> EncoderSettings:
        """Return the settings as the core takes them."""
        return EncoderSettings(**self.settings, progress=False)


class Embedded(NamedTuple):
    """Different texts with their embeddings.

    places : the row of each text
    vectors : ndarray of shape (n, d), unit rows in float32
    """

    places: dict[str, int]
    vectors: np.ndarray

    def of(self, texts: Sequence[str]) -> np.ndarray:
        """Return the unit vectors of k texts: (k, d), float64."""
        vectors = self.vectors[[self.places[text] for text in texts]].astype(np.float64)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def sums(self, sets: Sequence[Sequence[str]]) -> np.ndarray:
        """Add up the unit vectors of each of m sets: (m, d), float64."""
        return np.stack([self.of(texts).sum(axis=0) for texts in sets])


def embed(texts: Iterable[str], encoder: Encoder) -> Embedded:
    """Embed each different text once, in parts that the cache keeps; the order of the texts does not matter."""
    unique = sorted(set(texts), key=lambda text: (len(text), text))
    settings = encoder.read()
    parts = []
    with tqdm(total=len(unique), desc="Embedding", unit="text", disable=encoder.quiet) as bar:
        # The longest first, so that a lack of memory shows at once.
        for end in range(len(unique), 0, -_TEXTS_AT_ONCE):
            part = unique[max(0, end - _TEXTS_AT_ONCE) : end]
            matrix = encode(part, settings).embeddings
            parts.append(parse_embeddings(matrix, parse_sets(part), "the embeddings:").astype(np.float32, copy=False))
            bar.update(len(part))
    return Embedded({text: i for i, text in enumerate(unique)}, np.concatenate(parts[::-1]))


class Reach(NamedTuple):
    """What an encoder does not read as it is, of the different texts of a system.

    n : the number of different texts
    n_long : of texts longer than the encoder reads at a time
    limit : the tokens that it reads at a time; None where there is no limit
    n_unread : of texts whose words the encoder does not know
    """

    n: int
    n_long: int
    limit: int | None
    n_unread: int


def reach(texts: Iterable[str], encoder: Encoder) -> Reach:
    """Count the texts that the encoder reads in windows or cuts, and those that it cannot read."""
    unique = sorted(set(texts))
    settings = encoder.read()
    loaded, _ = load_encoder(settings.model, settings.device)
    with loaded.lock:
        lengths, n_unread = count_tokens(loaded.tokenizer, unique)
    limit = loaded.token_limit
    return Reach(len(unique), 0 if limit is None else int((lengths > limit).sum()), limit, n_unread)
