"""The encoder `model="content"`: the default encoder with a linear map to what people call the same content."""

from typing import Any

import numpy as np

from .core_models import DEFAULT_MODEL, ModelFiles, find_model, load_once
from .core_weights import bring_weights

CONTENT_MODEL = "content"
CONTENT_FILE = "content.safetensors"
# Of the file that scripts/training/content.py wrote.
CONTENT_SHA256 = "92be403b3ff97b22e63257bd59e46128712462e69f65c50a867b8f525559fe8f"
CONTENT_IDENTITY = f"{CONTENT_MODEL}@{CONTENT_SHA256[:8]}"
# The name of the matrix in the file.
CONTENT_WEIGHT = "weight"


def is_content(model: Any) -> bool:
    """Tell whether an argument names this encoder; a folder of this name is "./content"."""
    return isinstance(model, str) and model == CONTENT_MODEL


def find_encoder(model: Any) -> ModelFiles:
    """Find the files of a sentence encoder, as `find_model` does; that of "content" is its matrix."""
    return find_content() if is_content(model) else find_model(model)


def find_content() -> ModelFiles:
    """Find the matrix, which `evaluate` does not copy; a ValueError says what to do if it is missing."""
    use = f'model="{CONTENT_MODEL}"'
    path = bring_weights(__file__, __name__, CONTENT_FILE, CONTENT_SHA256, use, f'model="{DEFAULT_MODEL}"')
    return ModelFiles(path, CONTENT_IDENTITY)


def map_embeddings(rows: np.ndarray, files: ModelFiles) -> np.ndarray:
    """Multiply embeddings of the default encoder, (n, 384), by the matrix of a file: unit vectors, (n, 384)."""

    def load() -> np.ndarray:
        from safetensors.numpy import load_file

        return load_file(files.path)[CONTENT_WEIGHT].astype(np.float32)

    mapped = rows @ load_once(("matrix", files.identity), load).T
    return mapped / np.linalg.norm(mapped, axis=1, keepdims=True)
