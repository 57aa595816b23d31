"""Sentence embeddings of texts, by the default model, sentence-transformers or a user's encoder; without contexts.

Each different text is encoded once, in order of length over all sets, in batches of a token budget; a text that is
longer than the model reads, in windows.
"""

import contextlib
import math
import re
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from tqdm.auto import tqdm

from .core_cache import Cache, cache_folder
from .core_content import CONTENT_IDENTITY, find_content, find_encoder, is_content, map_embeddings
from .core_inputs import (
    LIMITS,
    TextSets,
    find_different,
    list_vectors,
    owners_of,
    parse_context_rows,
    parse_contexts,
    parse_embeddings,
)
from .core_intervals import UNBOUNDED
from .core_minilm import load_minilm
from .core_models import (
    DEFAULT_IDENTITY,
    DEFAULT_MODEL,
    DEFAULT_NAMES,
    find_device,
    find_model,
    load_once,
    model_registry,
    quiet_loading,
)
from .core_numbers import ROW_ERRORS, float_type, parse_choice, parse_count, parse_flag, parse_matrix, unit_vectors
from .core_results import caller_name
from .core_settings import ITEM, TEXT, SetSettings, Settings, setting
from .core_warnings import warn
from .core_windows import split_windows, token_batches

# Characters that the default model cannot read: not Latin letters, nor marks or symbols of Latin texts.
_OTHER_SCRIPT = re.compile(r"[^\0-\u024f\u1e00-\u22ff]")

# Weights of the default encoder that multiply each token, and the most token budgets of a batch of a smaller model.
_DEFAULT_WEIGHTS = 10_600_000
_MOST_BUDGETS = 64

# Numbers of a block that stays in the cache of a processor: 0.5 MB of float64.
_CACHED_NUMBERS = 65_536


def in_type_of(given: Any, values: np.ndarray) -> Any:
    """Return values in the floating-point type that was given, which sets the tolerance for rounding."""
    kind = float_type(given)
    if kind != "bfloat16":
        return values.astype(kind, copy=False)
    import torch  # numpy has no such type

    return torch.from_numpy(values).bfloat16()


def _read_embeddings(values: Any, sets: TextSets, name: str) -> Any:
    return in_type_of(values, parse_embeddings(values, sets, name))


class UnknownWordsWarning(UserWarning):
    """Texts consist of words that the model does not know."""


@dataclass(frozen=True)
class EncoderSettings(Settings):
    """Settings of the encoder; with a user-supplied one, only `model` applies."""

    model: Any = setting(
        DEFAULT_MODEL,
        help="`str`, path or encoder: a sentence-transformers model, as a folder or an id of the Hugging Face Hub; "
        '`"content"`, the default with a linear map to what people call the same content, in English; or any object '
        "with a method `encode` that maps a list of n strings to an array of shape (n, d). The signature reports an "
        "object as `given(<class>)`, or by its attribute `signature_name`.",
    )
    batch_size: int | None = setting(
        None,
        parse_count,
        help="`int`: number of texts in a batch. Default: a budget of tokens. It changes scores by rounding only.",
    )
    device: str | None = setting(
        None, help="`str`: torch device of the model. Default: the fastest. It changes scores by rounding only."
    )
    cache_dir: Any = setting(
        None,
        cache_folder,
        help="`str` or path: folder of a cache of embeddings that processes can share; not the one of `evaluate.load`.",
    )
    progress: bool = setting(False, parse_flag, help="`bool`: show a progress bar.")
    long_texts: str = setting(
        "windows",
        parse_choice,
        choices=("windows", "cut"),
        help='`"windows"` or `"cut"`: treatment of a text longer than the model reads (256 tokens for the default). '
        '`"windows"`: the mean of the embeddings of consecutive windows, weighted by tokens. `"cut"`: the rest is cut '
        "off, with a warning.",
    )

    @property
    def is_given(self) -> bool:
        """True if `model` is a user-supplied encoder."""
        return callable(getattr(self.model, "encode", None)) and not isinstance(self.model, str)

    @property
    def is_default(self) -> bool:
        """True if the encoder is the default model."""
        return isinstance(self.model, str) and self.model.rstrip("/") in DEFAULT_NAMES

    @property
    def is_english(self) -> bool:
        """Whether the encoder is known to read English only: the default model, also with a linear map."""
        return self.is_default or is_content(self.model)

    def signed_encoder(self, files: Any = None) -> dict[str, str]:
        """Return the entries of a signature for the encoder, which is not loaded; its files are found if not given."""
        if self.is_given:
            return {"model": f"given({caller_name(self.model)})"}
        windows = {"long_texts": "windows"} if self.long_texts == "windows" else {}
        return {"model": (files or find_encoder(self.model)).identity, **windows}

    def check_found(self) -> None:
        """Raise an error if the device, or the model if it is not the default, cannot be found; nothing is loaded."""
        find_device(self.device)
        if not self.is_given and not self.is_default:
            find_encoder(self.model)

    @classmethod
    def prepare(cls) -> None:
        """Bring the matrix of "content" beside the code; if it is missing, the error comes at use."""
        with contextlib.suppress(ValueError):
            find_content()


@dataclass(frozen=True, kw_only=True)
class EmbeddedSetSettings(SetSettings, EncoderSettings):
    """The settings of a metric of sets that compares embeddings."""

    quality: Any = setting(
        None,
        given=TEXT,
        numbers=(0, 1),
        help="flat, or nested like `predictions`: quality of each text, in [0, 1], such as the `scores` of `gruen`.",
    )
    embeddings: Any = setting(
        None,
        given=TEXT,
        numbers=UNBOUNDED,
        reader=_read_embeddings,
        help="array of shape (n, d), or a list of (k, d) for each set: embeddings of all texts, set after set. No "
        "encoder runs. Their norms do not matter.",
    )
    contexts: Any = setting(
        None,
        given=ITEM,
        reader=parse_contexts,
        is_optional=True,
        help="`list[str]` or `str`: the prompt or question that the texts of each set answer, or None. Each text loses "
        "the component of its embedding along that of its context. A blank context is none. A text that equals "
        "its context is unlike all others. A model that reads pairs of texts reads the context before both.",
    )
    context_embeddings: Any = setting(
        None,
        given=ITEM,
        numbers=UNBOUNDED,
        reader=list_vectors,
        is_optional=True,
        help="array of shape (m, d), or a list with a (d,) vector or None for each set: with `embeddings`, the "
        "embeddings of the contexts.",
    )

    def check(self) -> None:
        """Raise a ValueError if texts and contexts would be embedded differently."""
        self.check_exclusive("contexts", "context_embeddings")
        self.check_exclusive("contexts", "embeddings")
        if self.context_embeddings is not None and self.embeddings is None:
            raise ValueError("context_embeddings needs embeddings=. Without them, pass the texts as contexts=.")


class Encoded(NamedTuple):
    """Embeddings of n texts.

    rows : ndarray of shape (n, d), float32 or float64, every row finite and non-zero
    signed : the entries of a signature
    precision : name of the floating-point type in which they were given or computed
    """

    rows: np.ndarray
    signed: dict[str, str]
    precision: str


def encode(texts: list[str], settings: EncoderSettings = EncoderSettings()) -> Encoded:
    """Embed n texts.

    Warns once each of texts whose ends are cut off, and of texts in a script that the default model does not know.
    Raises a TypeError or ValueError if the model is not found or no sentence encoder, if an embedding is invalid, or if
    the cache cannot be used.
    """
    different, places = find_different(texts)
    if settings.is_given:
        signed = settings.signed_encoder()
        rows = settings.model.encode(different)
    else:
        rows, signed = _encode_different(different, settings)
    name = f"the embeddings by model {signed['model']}:"
    precision = float_type(rows)
    rows = parse_matrix(rows, len(different), name)
    flat = TextSets(texts, np.array([len(texts)]), nested=False)
    return Encoded(parse_embeddings(rows[places], flat, name), signed, precision)


def embed_sets(sets: TextSets, settings: EmbeddedSetSettings) -> Encoded:
    """Encode the texts of sets, or check given embeddings, and project out the contexts."""
    contexts = None
    if settings.embeddings is not None:
        encoded = Encoded(
            parse_embeddings(settings.embeddings, sets), {"embeddings": "given"}, float_type(settings.embeddings)
        )
        if settings.context_embeddings is not None:
            contexts = parse_context_rows(settings.context_embeddings, sets, encoded.rows.shape[1])
    elif settings.contexts is None:
        encoded = encode(sets.texts, settings)
    else:
        texts = parse_contexts(settings.contexts, sets)
        has_context = [bool(text) for text in texts]
        given = [text for text in texts if text]
        encoded = encode(sets.texts + given, settings)
        contexts = np.zeros((len(texts), encoded.rows.shape[1]))
        contexts[has_context] = encoded.rows[len(sets.texts) :]
        encoded = encoded._replace(rows=encoded.rows[: len(sets.texts)])
    if contexts is None:
        return encoded
    rows = project(encoded.rows, contexts, sets.sizes, ROW_ERRORS[encoded.precision])
    return encoded._replace(rows=rows, signed={**encoded.signed, "contexts": "projected"})


def project(rows: np.ndarray, contexts: np.ndarray, sizes: np.ndarray, error: float) -> np.ndarray:
    """Remove from the embedding of each text its component along the embedding of its context.

    Texts that answer one prompt share the prompt, and what they share is not diversity. A unit row e becomes e -
    (e·c)c, scaled to unit length, for the unit row c of the context. A row with nothing else, to within the error of
    unit rows, stays e: it equals its copies, and is orthogonal to each row that lost the component.

    Maps rows (n, d), non-zero, set after set, and contexts (m, d), float64, zero for a set without one, to (n, d), of
    the type of the rows, all of length 1. The error is of ROW_ERRORS.
    """
    n, d = rows.shape
    projected = np.empty_like(rows)
    set_of = owners_of(sizes)
    n_block = max(1, _CACHED_NUMBERS // d)
    buffers = np.empty((3, n_block, d))
    for start in range(0, n, n_block):
        part = slice(start, start + n_block)
        owners = set_of[part]
        first = owners[0]
        directions = unit_vectors(contexts[first : owners[-1] + 1])
        given = rows[part].astype(np.float64, copy=False)
        vectors, rest, products = buffers[:, : len(owners)]
        np.divide(given, _row_lengths(given, products), out=vectors)
        np.take(directions, owners - first, axis=0, out=rest, mode="clip")
        np.multiply(vectors, rest, out=products)
        rest *= products.sum(axis=1, keepdims=True)
        np.subtract(vectors, rest, out=rest)
        lengths = _row_lengths(rest, products)
        is_context = lengths <= error
        if is_context.any():
            lengths[is_context] = 1
            np.copyto(rest, vectors, where=is_context)
        np.divide(rest, lengths, out=projected[part])
    return projected


def _row_lengths(rows: np.ndarray, products: np.ndarray) -> np.ndarray:
    """Return the lengths of rows (n, d) as (n, 1); `products`, of the same shape, is overwritten."""
    np.multiply(rows, rows, out=products)
    return np.sqrt(products.sum(axis=1, keepdims=True))


def load_encoder(files: Any, device: str) -> Any:
    """Load a model found by `find_encoder`, once in a process: a SentenceTransformer in float32, or our own.

    That of "content" is the default model, whose embeddings `map_embeddings` maps.
    """
    if files.identity == CONTENT_IDENTITY:
        files = find_model(DEFAULT_MODEL)
    if files.identity == DEFAULT_IDENTITY:
        return load_minilm(files, device)

    def load() -> Any:
        from sentence_transformers import SentenceTransformer

        with quiet_loading("model", files.path, "a sentence encoder"):
            model = SentenceTransformer(str(files.path), device=device, local_files_only=True).float().eval()
            # A KeyError if no module makes an embedding of a text.
            model.encode(["a"], show_progress_bar=False)
        return model

    return load_once((files.identity, device), load)


def is_other_script(text: str) -> bool:
    """Tell whether more than half of the characters are emoji or of a script that the default model does not know."""
    return not text.isascii() and 2 * len(_OTHER_SCRIPT.findall(text)) > len(text)


def _encode_different(texts: list[str], settings: EncoderSettings) -> tuple[np.ndarray, dict[str, str]]:
    """Encode different texts, (n, d), float32; the model is loaded only if the cache lacks one."""
    # Found once: a model whose files change meanwhile must not be stored under the name of the old one.
    files = find_encoder(settings.model)
    signed = settings.signed_encoder(files)
    cache = None if settings.cache_dir is None else Cache(settings.cache_dir, "|".join(signed.values()))
    rows = {} if cache is None else cache.get(texts)
    missing = [text for text in texts if text not in rows]
    with tqdm(total=len(missing), desc="Encoding", unit="text", disable=not settings.progress) as bar:
        for start in range(0, len(missing), LIMITS.cached_texts):
            part = missing[start : start + LIMITS.cached_texts]
            new = dict(zip(part, _encode_part(part, files, settings, bar), strict=True))
            rows |= new
            if cache is not None:
                cache.put(new)
    different = f"{len(texts)} different texts"
    if settings.long_texts == "cut":
        model = load_encoder(files, find_device(settings.device))
        with model_registry().lock:
            tokenizer, room = _reader(model)
            n_cut = np.count_nonzero(split_windows(tokenizer, texts, math.inf).lengths > room)
        if n_cut:
            warn(f"{n_cut} of {different} are longer than the model reads: the rest is cut off.")
    if settings.is_english and (n_unknown := sum(map(is_other_script, texts))):
        reason = "are emoji or in a script that the model does not know: their embeddings are unreliable."
        warn(f"{n_unknown} of {different} {reason}", UnknownWordsWarning)
    return np.array([rows[text] for text in texts]), signed


def _encode_part(texts: list[str], files: Any, settings: EncoderSettings, bar: tqdm) -> np.ndarray:
    """Encode different texts: (n, d), float32."""
    model = load_encoder(files, find_device(settings.device))
    with model_registry().lock:
        tokenizer, room = _reader(model)
        windows = split_windows(tokenizer, texts, room if settings.long_texts == "windows" else math.inf)
        bar.total += len(windows.parts) - len(texts)
        order = []
        rows = []
        lengths = np.clip(windows.lengths, 1, room)
        for batch in token_batches(lengths, model.device.type, settings.batch_size, _count_budgets(model)):
            parts = [windows.parts[i] for i in batch]
            rows.append(model.encode(parts, batch_size=len(parts), show_progress_bar=False))
            order.append(batch)
            bar.update(len(batch))
    embedded = windows.average(np.concatenate(rows)[np.argsort(np.concatenate(order))])
    return map_embeddings(embedded, files) if files.identity == CONTENT_IDENTITY else embedded


def _count_budgets(model: Any) -> int:
    """Return how many token budgets a model reads in the time of one by the default encoder, on a CPU; at least 1.

    The time of a token grows with the weights that multiply it, of which a static encoder, a table of vectors, has
    none: in small batches, it would spend most of its time on calls.
    """
    # The encoders of this package are not torch modules.
    if model.device.type != "cpu" or not hasattr(model, "modules"):
        return 1
    n_weights = 0
    for module in model.modules():
        # Tables are looked up.
        if not type(module).__name__.startswith("Embedding"):
            n_weights += sum(weights.numel() for weights in module.parameters(recurse=False))
    return min(_MOST_BUDGETS, max(1, _DEFAULT_WEIGHTS // max(1, n_weights)))


def _reader(model: Any) -> tuple[Any, float]:
    """Return the tokenizer of a model, and the most tokens of a text that it reads, without special ones."""
    tokenizer: Any = getattr(model, "tokenizer", None)
    is_limited = model.max_seq_length and hasattr(tokenizer, "num_special_tokens_to_add")
    return tokenizer, model.max_seq_length - tokenizer.num_special_tokens_to_add(False) if is_limited else math.inf


def unit_rows(embeddings: np.ndarray, rows: np.ndarray, device: str, buffer: Any = None) -> Any:
    """Take rows of the embeddings, an array of any shape, at unit length: a tensor of shape (..., d), float64.

    buffer : tensor of shape (rows.size or more, d) that they are written to; new memory takes longer than the division
    """
    import torch

    first = rows.flat[0]
    n = rows.size
    is_slice = bool((np.diff(rows.ravel()) == 1).all())
    part = embeddings[first : first + n] if is_slice else embeddings[rows.ravel()]
    # torch warns of an array that is read-only, such as a memory map, and takes no negative strides.
    part = torch.from_numpy(np.require(part, requirements=["C", "W"]))
    vectors = part.to(device, torch.float64, copy=True) if buffer is None else buffer[:n].copy_(part)
    return vectors.div_(torch.linalg.vector_norm(vectors, dim=1, keepdim=True)).reshape(*rows.shape, -1)
