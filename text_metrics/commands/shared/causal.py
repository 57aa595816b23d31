"""Causal language models from a folder, a GGUF file or the Hugging Face Hub."""

import hashlib
import os
from pathlib import Path
from typing import Any, NamedTuple, cast

from text_metrics.metrics._core.core_models import ModelFiles, find_device, find_transformer


class CausalModel(NamedTuple):
    """A causal language model, in inference mode, with its tokenizer.

    identity : the exact weights
    """

    identity: str
    device: str
    tokenizer: Any
    model: Any


def load_causal(model: str | os.PathLike[str]) -> CausalModel:
    """Load a causal language model in float32, on a GPU where there is one.

    Parameters
    ----------
    model : a folder, a GGUF file, a folder with one GGUF file, or an id on the Hugging Face Hub
    """
    from transformers import AutoModelForCausalLM, AutoTokenizer

    files, gguf = _find(model)
    options: dict[str, Any] = {"gguf_file": gguf} if gguf else {"local_files_only": True}
    device = find_device(None)
    tokenizer = AutoTokenizer.from_pretrained(files.path, **options)
    loaded = AutoModelForCausalLM.from_pretrained(files.path, dtype="float32", **options)
    return CausalModel(files.identity, device, tokenizer, cast(Any, loaded).to(device).eval())


def _find(model: str | os.PathLike[str]) -> tuple[ModelFiles, str | None]:
    """Find a model's files, and the name of its GGUF file if it is one."""
    path = Path(model).expanduser()
    gguf_files = (
        [path] if path.suffix == ".gguf" and path.is_file() else sorted(path.glob("*.gguf")) if path.is_dir() else []
    )
    if not gguf_files or (path / "config.json").is_file():
        return find_transformer(model, "--model"), None
    if len(gguf_files) > 1:
        raise ValueError(f"--model must name one GGUF file. {path} has {', '.join(file.name for file in gguf_files)}.")
    with gguf_files[0].open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return ModelFiles(gguf_files[0].parent, f"{gguf_files[0].stem}@{digest[:8]}"), gguf_files[0].name
