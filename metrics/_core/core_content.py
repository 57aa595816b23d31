"""The encoder `model="content"`: the default encoder with adapters that learned what people call the same content."""

from pathlib import Path
from typing import Any

from .core_minilm import MiniLM, load_minilm
from .core_models import DEFAULT_MODEL, ModelFiles, find_model, load_once
from .core_weights import bring_weights

CONTENT_MODEL = "content"
CONTENT_FILE = "content.safetensors"
# Of the file that scripts/training/content.py wrote.
CONTENT_SHA256 = "fd9e681999bf0823d1d75746550ad23a681b9c1253a50d5507654572a7a09245"
CONTENT_IDENTITY = f"{CONTENT_MODEL}@{CONTENT_SHA256[:8]}"
_ADAPTERS = "adapters."


def is_content(model: Any) -> bool:
    """Tell whether an argument names this encoder; a folder of this name is "./content"."""
    return isinstance(model, str) and model == CONTENT_MODEL


def find_encoder(model: Any) -> ModelFiles:
    """Find the files of a sentence encoder, as `find_model` does; those of "content" are its adapters."""
    return find_content() if is_content(model) else find_model(model)


def find_content() -> ModelFiles:
    """Find the adapters, which `evaluate` does not copy; a ValueError says what to do if they are missing."""
    use = f'model="{CONTENT_MODEL}"'
    path = bring_weights(__file__, __name__, CONTENT_FILE, CONTENT_SHA256, use, f'model="{DEFAULT_MODEL}"')
    return ModelFiles(path, CONTENT_IDENTITY)


def load_content(files: ModelFiles, device: str) -> MiniLM:
    """Load the default encoder with the adapters of a file added to its weights, once in a process."""
    return load_once((files.identity, device), lambda: _read_adapters(files.path, device))


def _read_adapters(path: Path, device: str) -> MiniLM:
    from safetensors.torch import load_file

    adapters = {name.removeprefix(_ADAPTERS): tensor for name, tensor in load_file(path).items()}
    return load_minilm(find_model(DEFAULT_MODEL), device).with_adapters(adapters)
