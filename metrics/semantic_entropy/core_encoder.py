"""Texts to sentence embeddings, by sentence-transformers or by an encoder of the caller's.

Each different text is encoded once, in order of length over all sets, in batches of a token budget.
"""

import logging
import re
import threading
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .core_cache import cache_folder, through_cache
from .core_inputs import LIMITS, TextSets, parse_embeddings
from .core_models import DEFAULT_MODEL, DEFAULT_NAMES, find_device, find_model, load_once, quiet_loading
from .core_numbers import float_type, parse_choice, parse_count, parse_flag, parse_matrix
from .core_results import UNBOUNDED, caller_name
from .core_settings import PAIR, TEXT, Settings, setting
from .core_windows import split_windows

# Seconds before a progress bar appears.
_DELAY = 0.5
# Tokens in a batch, padding included: enough to keep a processor busy, few enough to stay in its cache.
_TOKEN_BUDGETS = {"cpu": 1024, "cuda": 32_768, "mps": 8192}
# The largest part of a budget that may be padding.
_PADDING = 1 / 8
# Letters of scripts that are spelled, other than Latin: not Chinese characters, kana or Korean syllables.
_SPELLED = re.compile(r"[^\0-\u024f\u1e00-\u1eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff]")
logger = logging.getLogger(__name__)


class UnknownWordsWarning(UserWarning):
    """Texts consist of words that the model does not know."""


@dataclass(frozen=True)
class EncoderSettings(Settings):
    """How to embed texts.

    Parameters
    ----------
    model : name of the default model, a folder, or an id on the Hugging Face Hub; or an encoder: an object with
        `encode(list of n str) -> array of shape (n, d)`, to which of the other settings only `progress` does not apply
    batch_size : texts in a batch; as many as fit a token budget if None. It does not change the embeddings.
    device : a torch device; the fastest available if None
    cache_dir : path of a folder in which embeddings are kept between runs, or None
    progress : show a progress bar; if None, only where logging is at INFO or below
    long_texts : "windows": a text that is longer than the model reads is embedded in windows; "cut": its end is cut
        off
    """

    model: Any = setting(DEFAULT_MODEL)
    batch_size: int | None = setting(None, parse_count)
    device: str | None = setting(None)
    cache_dir: Any = setting(None, cache_folder)
    progress: bool | None = setting(None, parse_flag)
    long_texts: str = setting("windows", parse_choice, choices=("windows", "cut"))

    @property
    def is_given(self) -> bool:
        """Whether `model` is an encoder of the caller's."""
        return callable(getattr(self.model, "encode", None)) and not isinstance(self.model, str)

    @property
    def is_default(self) -> bool:
        """Whether the default model is the encoder."""
        return isinstance(self.model, str) and self.model.rstrip("/") in DEFAULT_NAMES

    @property
    def in_windows(self) -> bool:
        """Whether long texts are embedded in windows."""
        return self.long_texts == "windows"

    def check_found(self) -> None:
        """Raise an error if the device, or the model if it is not the default, cannot be found; nothing is loaded."""
        if self.device is not None:
            find_device(self.device)
        if not self.is_given and not self.is_default:
            find_model(self.model)


@dataclass(frozen=True, kw_only=True)
class SourceSettings(EncoderSettings):
    """How sets of texts are compared: by an encoder, or by embeddings or similarities that the caller gives."""

    set_size: int | None = setting(None, parse_count)
    quality: Any = setting(None, given=TEXT, numbers=(0, 1))
    embeddings: Any = setting(None, given=TEXT, numbers=UNBOUNDED)
    similarity: Any = setting(None, given=PAIR, numbers=UNBOUNDED)

    def check(self) -> None:
        """Raise a ValueError if both embeddings and similarities are given."""
        self.pass_one("embeddings", "similarity")


class LoadedEncoder(NamedTuple):
    """A SentenceTransformer in memory, and the lock to hold while it runs: its tokenizer is not thread-safe.

    tokenizer : of `transformers`; None if the model has no such tokenizer
    token_limit : tokens of a text that it reads; None if unknown or unlimited
    """

    model: Any
    tokenizer: Any
    token_limit: int | None
    lock: Any


class Encoded(NamedTuple):
    """Embeddings, ndarray of shape (n, d), and the entries of a signature."""

    embeddings: np.ndarray
    signed: dict[str, str]


def load_encoder(model: Any, device: str | None) -> tuple[LoadedEncoder, str]:
    """Load a model in float32, or return the one that this process has loaded, with the identity of its weights."""
    device, files = find_device(device), find_model(model)
    return load_once((files.identity, device), lambda: _read_encoder(files.path, device)), files.identity


def _read_encoder(path: Path, device: str) -> LoadedEncoder:
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise ImportError(
            "sentence-transformers is needed to embed texts: pip install sentence-transformers, "
            "or pass embeddings= of your own."
        ) from error
    with quiet_loading("model", path, "a sentence encoder", warns=True):
        model = SentenceTransformer(str(path), device=device, local_files_only=True).float().eval()
        # A KeyError if no module makes an embedding of a text.
        model.encode(["a"], show_progress_bar=False)
    tokenizer = getattr(model, "tokenizer", None)
    if not callable(tokenizer) or not hasattr(tokenizer, "num_special_tokens_to_add"):  # such as a static embedding's
        return LoadedEncoder(model, None, None, threading.RLock())
    limit = model.max_seq_length
    return LoadedEncoder(model, tokenizer, None if limit in (None, float("inf")) else limit, threading.RLock())


def encode(texts: list[str], settings: EncoderSettings = EncoderSettings()) -> Encoded:
    """Embed n texts.

    Warns
    -----
    UserWarning
        Once each: if the ends of texts are cut off, if texts consist of words that
        the model does not know, and if the cache cannot be written to.

    Raises
    ------
    TypeError, ValueError
        If the model is not found or no sentence encoder, if an encoder of the
        caller's returns no array of shape (n, d), or if the cache is damaged.
    """
    rows = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    encode_all = _encode_given if settings.is_given else _encode_unique
    encoded = encode_all(list(rows), settings)
    return encoded._replace(embeddings=encoded.embeddings[[rows[text] for text in texts]])


def embed_sets(sets: TextSets, embeddings: Any, settings: EncoderSettings) -> tuple[np.ndarray, dict[str, str]]:
    """Check the embeddings that the caller gives, or encode the texts if there are none.

    Returns an ndarray of shape (n, d), every row finite and non-zero, and the entries of a signature.
    """
    if embeddings is not None:
        return parse_embeddings(embeddings, sets), {"embeddings": "given", **_narrow(embeddings)}
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


def _encode_given(texts: list[str], settings: EncoderSettings) -> Encoded:
    identity = f"given({caller_name(settings.model)})"
    rows = settings.model.encode(texts)
    matrix = parse_matrix(rows, len(texts), f"the embeddings by model {identity}:")
    return Encoded(matrix, {"model": identity, **_narrow(rows)})


def _narrow(rows: Any) -> dict[str, str]:
    """Make the entry of a signature for rows in a type narrower than float32; none for others."""
    kind = float_type(rows)
    return {"precision": kind} if kind in ("float16", "bfloat16") else {}


def _encode_unique(texts: list[str], settings: EncoderSettings) -> Encoded:
    """Encode different texts; the model is loaded only if the cache lacks one."""
    identity, unread = find_model(settings.model).identity, 0

    def compute(part: list[str]) -> tuple[np.ndarray, np.ndarray]:
        nonlocal unread
        loaded, current = load_encoder(settings.model, settings.device)
        if current != identity:
            raise ValueError(f"model: its files changed while they were in use, from {identity} to {current}.")
        embeddings, cut, part_unread = _encode_batches(loaded, part, settings, bar)
        unread += part_unread
        return embeddings, cut

    signed = {"model": identity} | ({"long_texts": "windows"} if settings.in_windows else {})
    with progress_bar(len(texts), "Encoding", "text", settings.progress) as bar:
        if not texts:
            embeddings, cut = np.empty((0, 0), dtype=np.float32), np.empty(0, dtype=np.int64)
        elif settings.cache_dir is None:
            embeddings, cut = compute(texts)
        else:
            kept = "|".join(signed.values())
            embeddings, cut = through_cache(settings.cache_dir, kept, texts, compute, bar.update)
    if cut.any():
        _warn(
            f"{np.count_nonzero(cut)} of {len(cut)} different texts are longer than the model reads: the rest of each "
            f"is cut off (the longest has {cut.max()} tokens)."
        )
    if unread:
        _warn(
            f"{unread} of {len(texts)} different texts consist of words that the model does not know, such as emoji or "
            "another script: their embeddings are unreliable.",
            UnknownWordsWarning,
        )
    return Encoded(embeddings, signed)


def _warn(message: str, category: type[UserWarning] = UserWarning) -> None:
    warnings.warn(message, category, stacklevel=5)


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
    with loaded.lock:
        lengths, unread = count_tokens(loaded.tokenizer, texts)
        limit = loaded.token_limit or int(lengths.max())
        if settings.in_windows and (lengths > limit).any():
            windows = split_windows(loaded.tokenizer, texts, lengths, limit)
            bar.total += len(windows.parts) - len(texts)
            parts = _run_batches(loaded, windows.parts, windows.lengths, settings.batch_size, bar)
            return windows.average(parts), np.zeros_like(lengths), unread
        embeddings = _run_batches(loaded, texts, np.minimum(lengths, limit), settings.batch_size, bar)
    return embeddings, lengths * (lengths > limit), unread


def _run_batches(
    loaded: LoadedEncoder, texts: list[str], lengths: np.ndarray, batch_size: int | None, bar: Any
) -> np.ndarray:
    """Encode texts of known numbers of tokens, batch by batch: (n, d), float32."""
    order, rows = [], []
    for batch in token_batches(lengths, str(loaded.model.device), batch_size):
        part = [texts[i] for i in batch]
        rows.append(loaded.model.encode(part, batch_size=len(part), show_progress_bar=False))
        order.append(batch)
        bar.update(len(batch))
    return np.concatenate(rows)[np.argsort(np.concatenate(order))]


def token_batches(lengths: np.ndarray, device: str, batch_size: int | None = None) -> Iterator[np.ndarray]:
    """Batch sequences of similar length, the longest first, so that a lack of memory shows at once.

    Parameters
    ----------
    lengths : ndarray of shape (n,), tokens of each sequence
    device : decides the token budget of a batch
    batch_size : sequences in a batch, whatever their tokens; if None, as many as fit the budget with little padding

    Yields
    ------
    ndarray of shape (b,), indices of sequences
    """
    order = np.argsort(-lengths, kind="stable")
    budget = _TOKEN_BUDGETS[device.split(":")[0]]
    start = 0
    while start < len(order):
        n = batch_size
        if n is None:
            longest = max(1, int(lengths[order[start]]))
            padding = np.cumsum(longest - lengths[order[start : start + max(1, budget // longest)]])
            n = max(1, int(np.searchsorted(padding, budget * _PADDING, side="right")))
        yield order[start : start + n]
        start += n


def count_tokens(tokenizer: Any, texts: list[str]) -> tuple[np.ndarray, int]:
    """Return the number of tokens of each text, and how many texts the model does not know.

    Without a tokenizer, characters are counted.
    """
    if tokenizer is None:
        return np.fromiter(map(len, texts), np.int64, len(texts)), 0
    lengths: list[int] = []
    unread = 0
    n_special = tokenizer.num_special_tokens_to_add()
    for start in range(0, len(texts), LIMITS.tokenized_texts):
        part = texts[start : start + LIMITS.tokenized_texts]
        ids = tokenizer(part, truncation=False, return_attention_mask=False, verbose=False)["input_ids"]
        lengths += map(len, ids)
        unread += sum(_is_unread(tokenizer, n_special, *pair) for pair in zip(part, ids, strict=True))
    return np.array(lengths, dtype=np.int64), unread


def _is_unread(tokenizer: Any, n_special: int, text: str, ids: list[int]) -> bool:
    """Return whether a quarter of the tokens is unknown, or half of them are single letters of another script.

    Chinese characters are words, so they count only if they are unknown.
    """
    n_words = max(1, len(ids) - n_special)
    if 4 * ids.count(tokenizer.unk_token_id) >= n_words:
        return True
    if text.isascii():
        return False
    pieces = (token.removeprefix("##").strip("▁") for token in tokenizer.convert_ids_to_tokens(ids))
    letters = sum(len(piece) == 1 and piece.isalpha() and _SPELLED.match(piece) is not None for piece in pieces)
    return 2 * letters >= n_words


def to_tensor(array: np.ndarray, device: str) -> Any:
    """Bring an array to a device, in its own type."""
    import torch

    # torch shares memory with numpy, and warns if the array is read-only, such as a memory map.
    return torch.from_numpy(np.require(array, requirements=("C", "W"))).to(device)


def unit_rows(embeddings: np.ndarray, rows: np.ndarray, device: str, buffer: Any = None) -> Any:
    """Take rows (b, k) of the embeddings at unit length: (b, k, d), float64, in a buffer if there is one.

    Memory that is allocated anew for each of many blocks takes longer than the division.
    """
    import torch

    wanted, first = rows.ravel(), int(rows.flat[0])
    # Sets of one size are mostly consecutive: a view of the array avoids a copy.
    together = np.array_equal(wanted, np.arange(first, first + len(wanted)))
    vectors = to_tensor(embeddings[first : first + len(wanted)] if together else embeddings[wanted], device)
    out = row_buffer(len(vectors), embeddings, device) if buffer is None else buffer[: len(vectors)]
    if vectors.dtype != torch.float64:
        vectors = out.copy_(vectors)
    torch.div(vectors, torch.linalg.vector_norm(vectors, dim=1, keepdim=True), out=out)
    return out.reshape(*rows.shape, -1)


def row_buffer(n: int, embeddings: np.ndarray, device: str) -> Any:
    """Allocate memory for n rows of embeddings in float64."""
    import torch

    return torch.empty((n, embeddings.shape[1]), dtype=torch.float64, device=device)
