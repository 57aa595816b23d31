"""Texts to sentence embeddings, by sentence-transformers or by an encoder of the caller's.

Each different text is encoded once, in order of length over all sets, in batches of a token budget.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .core_cache import TextCache, cache_folder, through_cache
from .core_inputs import TextSets, parse_embeddings
from .core_models import DEFAULT_MODEL, PRECISIONS, LoadedEncoder, find_device, find_model, load_encoder
from .core_numbers import describe, float_type, parse_matrix
from .core_results import caller_name, given_digest
from .core_settings import Settings, choice, count, flag, setting
from .core_tokens import count_tokens, split_windows, token_batches, warn_of_cut, warn_of_unread

# Seconds before a progress bar appears.
_DELAY = 0.5
logger = logging.getLogger(__name__)

# What is done with texts that are longer than the model reads; the first is the default.
LONG_TEXTS = ("windows", "cut")


@dataclass(frozen=True)
class EncoderSettings(Settings):
    """How to embed texts.

    Parameters
    ----------
    model : name of the default model, a folder, or an id on the Hugging Face Hub; or an encoder: an object with
        `encode(list of n str) -> array of shape (n, d)`
    precision : torch dtype of the encoder, "float32", "bfloat16" or "float16"; as the model is stored if None
    batch_size : texts in a batch; as many as fit a token budget if None. It does not change the embeddings.
    device : a torch device; the fastest available if None
    cache_dir : path of a folder in which embeddings are kept between runs, or None
    progress : show a progress bar; if None, only where logging is at INFO or below
    long_texts : "windows": a text that is longer than the model reads is embedded in windows; "cut": its end is cut
        off; None for the default

    Raises
    ------
    TypeError, ValueError
        If a setting is invalid, or has no effect with an encoder of the caller's.
    """

    model: Any = setting(DEFAULT_MODEL)
    precision: str | None = setting(None, choice(*PRECISIONS))
    batch_size: int | None = setting(None, count())
    device: str | None = setting(None)
    cache_dir: Any = setting(None, cache_folder)
    progress: bool | None = setting(None, flag)
    long_texts: str | None = setting(None, choice(*LONG_TEXTS))

    def check(self) -> None:
        """Raise an error for a setting that has no effect with an encoder of the caller's."""
        if self.is_given:
            for name in ("precision", "cache_dir", "long_texts"):
                self._refuse(name, None, f"model is an encoder of your own ({type(self.model).__name__})")

    @property
    def is_given(self) -> bool:
        """Whether `model` is an encoder of the caller's."""
        return callable(getattr(self.model, "encode", None)) and not isinstance(self.model, str)

    @property
    def is_default(self) -> bool:
        """Whether the default model is the encoder."""
        if _equal(self.model, DEFAULT_MODEL):
            return True
        return not self.is_given and find_model(self.model) == find_model(DEFAULT_MODEL)

    @property
    def in_windows(self) -> bool:
        """Whether long texts are embedded in windows."""
        return (self.long_texts or LONG_TEXTS[0]) == "windows"

    def check_found(self) -> None:
        """Raise an error if the device, or the model if it is not the default, cannot be found; nothing is loaded."""
        if self.is_given:
            return
        if self.device is not None:
            find_device(self.device)
        if not _equal(self.model, DEFAULT_MODEL):
            find_model(self.model)

    def check_unused(self, reason: str, but: Sequence[str] = ()) -> None:
        """Raise an error if a setting, other than some, asks something of an encoder that does not run.

        A device may be named for all calls, and is only checked.
        """
        if self.device is not None:
            find_device(self.device)
        defaults = {"model": DEFAULT_MODEL, "precision": None, "cache_dir": None, "long_texts": None}
        for name, default in defaults.items():
            if name not in but:
                self._refuse(name, default, reason)

    def _refuse(self, name: str, default: Any, reason: str) -> None:
        value = getattr(self, name)
        if not _equal(value, default):
            shown = str(value) if isinstance(value, Path) else value
            raise ValueError(f"{name} has no effect where {reason}: leave it out. Got {describe(shown)}.")


def _equal(value: Any, default: str | None) -> bool:
    # Other values, such as arrays, may define their own comparison.
    return value is default or (isinstance(value, str) and value == default)


class Encoded(NamedTuple):
    """Embeddings, and what decides them.

    embeddings : ndarray of shape (n, d)
    signed : the entries of a signature
    """

    embeddings: np.ndarray
    signed: dict[str, str]


def encode(texts: list[str], settings: EncoderSettings = EncoderSettings()) -> Encoded:
    """Embed n texts.

    Warns
    -----
    UserWarning
        Once each, with the count, if the ends of texts are cut off, and if texts consist of words that it does
        not know: a quarter of the tokens is unknown, or half of them are single letters of another script. Once, if the
        cache cannot be written to for lack of space.

    Raises
    ------
    TypeError, ValueError
        If the model cannot be found or is not a sentence encoder, if an encoder of the caller's returns anything but an
        array of shape (n, d), or if the cache is damaged.
    ImportError
        If sentence-transformers is missing.
    """
    rows = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    if settings.is_given:
        encoded = _encode_given(list(rows), settings.model)
    else:
        with progress_bar(len(rows), "Encoding", "text", settings.progress) as bar:
            encode_unique = _encode_unique if settings.cache_dir is None else _encode_through_cache
            encoded = encode_unique(list(rows), settings, bar)
    if len(rows) < len(texts):
        return encoded._replace(embeddings=encoded.embeddings[[rows[text] for text in texts]])
    return encoded


def embed_sets(sets: TextSets, embeddings: Any, settings: EncoderSettings) -> tuple[np.ndarray, dict[str, str]]:
    """Check the embeddings that the caller gives, or encode the texts if there are none.

    Returns an ndarray of shape (n, d), every row finite and non-zero, and the entries of a signature.
    """
    if embeddings is not None:
        settings.check_unused("embeddings are given")
        given = parse_embeddings(embeddings, sets)
        # In float32, so that an array and a list of the same numbers have one digest.
        pieces = (np.asarray(part, np.float32) for part in np.split(given, np.cumsum(sets.sizes)[:-1]))
        with np.errstate(over="ignore"):
            return given, {"embeddings": given_digest(pieces), **_narrow(embeddings)}
    matrix, signed = encode(sets.texts, settings)
    return parse_embeddings(matrix, sets, f"the embeddings by model {signed['model']}:"), signed


def embed_part(texts: list[str], settings: EncoderSettings) -> tuple[np.ndarray, dict[str, str]]:
    """Embed some texts of one set, as `embed_sets` does."""
    return embed_sets(TextSets(texts, np.array([len(texts)]), nested=False), None, settings)


def progress_bar(total: int, title: str, unit: str, show: bool | None) -> Any:
    """Make a progress bar; if `show` is None, it shows where logging is at INFO or below.

    It appears only for work of more than an instant, and does not stay if it is under another bar.
    """
    from tqdm.auto import tqdm

    if show is None:
        show = logger.getEffectiveLevel() <= logging.INFO
    return tqdm(total=total, desc=title, unit=unit, disable=not show, delay=_DELAY, leave=None)


def _encode_given(texts: list[str], encoder: Any) -> Encoded:
    identity = f"given({caller_name(encoder, type(encoder).__name__)})"
    rows = encoder.encode(texts)
    matrix = parse_matrix(rows, len(texts), f"the embeddings by model {identity}:")
    return Encoded(matrix, {"model": identity, **_narrow(rows)})


def _narrow(rows: Any) -> dict[str, str]:
    """Make the entry of a signature for rows in a type narrower than float32; none for others."""
    kind = float_type(rows)
    return {"precision": kind} if kind in ("float16", "bfloat16") else {}


def _encode_unique(texts: list[str], settings: EncoderSettings, bar: Any) -> Encoded:
    """Encode different texts."""
    loaded, identity = load_encoder(settings.model, settings.precision, settings.device)
    embeddings, cut, unread = _encode_batches(loaded, texts, settings, bar)
    warn_of_cut(cut, loaded.token_limit)
    warn_of_unread(unread, len(texts))
    return Encoded(embeddings, _signed(identity, loaded.precision, settings))


def _signed(identity: str, precision: str, settings: EncoderSettings) -> dict[str, str]:
    """Make the entries of a signature; texts are cut where nothing is said about them."""
    windows = {"long_texts": "windows"} if settings.in_windows else {}
    return {"model": identity, "precision": precision, **windows}


def _encode_through_cache(texts: list[str], settings: EncoderSettings, bar: Any) -> Encoded:
    """Encode the different texts that the cache does not hold, and keep them.

    The model is loaded only if a text is missing: its precision and its token limit are kept with the embeddings.
    """
    assert settings.cache_dir is not None
    identity = find_model(settings.model).identity
    with TextCache(settings.cache_dir, identity) as cache:
        precision = settings.precision or cache.setting("precision")
        if precision is None:
            cache.check_writable()
            precision = load_encoder(settings.model, settings.precision, settings.device)[0].precision
            cache.keep_setting("precision", precision)
        limit = cache.setting("tokens")
        unread = 0

        def encode_part(part: list[str]) -> tuple[np.ndarray, np.ndarray]:
            nonlocal limit, unread
            loaded, current = load_encoder(settings.model, settings.precision, settings.device)
            if (current, loaded.precision) != (identity, precision):
                raise ValueError(f"model: its files changed while they were in use, from {identity} to {current}.")
            embeddings, cut, part_unread = _encode_batches(loaded, part, settings, bar)
            unread += part_unread
            if cut.any() and limit is None:
                limit = str(loaded.token_limit)
                cache.keep_setting("tokens", limit)
            return embeddings, cut

        kind = f"{precision} in windows" if settings.in_windows else precision
        embeddings, cut = through_cache(cache, texts, kind, encode_part, bar.update)
    warn_of_cut(cut, limit)
    warn_of_unread(unread, len(texts))
    return Encoded(embeddings, _signed(identity, precision, settings))


def _encode_batches(
    loaded: LoadedEncoder, texts: list[str], settings: EncoderSettings, bar: Any
) -> tuple[np.ndarray, np.ndarray, int]:
    """Encode different texts.

    Returns
    -------
    embeddings : ndarray of shape (n, d), float32
    cut : ndarray of shape (n,), int64: the tokens of each text whose end is cut off; 0 for the others
    unread : the number of texts whose words the model does not know
    """
    tokenizer, limit, windows = loaded.tokenizer, loaded.token_limit, None
    with loaded.lock:
        lengths, unread = count_tokens(tokenizer, texts)
        is_long = np.zeros(len(texts), dtype=bool) if limit is None else lengths > limit
        if settings.in_windows and limit is not None and is_long.any():
            windows = split_windows(tokenizer, texts, lengths, limit)
    if windows is not None:
        bar.total += len(windows.parts) - len(texts)
        embeddings = windows.average(_run_batches(loaded, windows.parts, windows.lengths, settings.batch_size, bar))
        return embeddings, np.zeros_like(lengths), unread
    read = lengths if limit is None else np.minimum(lengths, limit)
    return _run_batches(loaded, texts, read, settings.batch_size, bar), lengths * is_long, unread


def _run_batches(
    loaded: LoadedEncoder, texts: list[str], lengths: np.ndarray, batch_size: int | None, bar: Any
) -> np.ndarray:
    """Encode texts of known numbers of tokens, batch by batch: (n, d), float32."""
    embeddings = np.empty((len(texts), 0), dtype=np.float32)
    for batch in token_batches(lengths, str(loaded.model.device), batch_size):
        # The lock is released between batches, so that a short call need not wait for the end of a long one.
        with loaded.lock:
            encoded = loaded.model.encode([texts[i] for i in batch], batch_size=len(batch), show_progress_bar=False)
        if not embeddings.shape[1]:
            embeddings = np.empty((len(texts), encoded.shape[1]), dtype=np.float32)
        embeddings[batch] = encoded
        bar.update(len(batch))
    return embeddings
