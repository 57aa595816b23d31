"""Transformers with a trained head, loaded once in a process."""

import threading
from typing import Any, NamedTuple

from .core_models import find_device, find_transformer, load_once, quiet_loading, token_limit


class LoadedHead(NamedTuple):
    """A transformer with a trained head in memory, and the lock to hold while its tokenizer, not thread-safe, runs.

    identity : the name of its exact weights in a signature
    """

    model: Any
    tokenizer: Any
    identity: str
    lock: Any

    def limit(self) -> int:
        """Return the most tokens that the model reads, special tokens included."""
        return token_limit(self.model, self.tokenizer)


def load_head(model: Any, parameter: str, auto_class: str, kind: str, device: str | None) -> LoadedHead:
    """Load a transformer with a trained head in float32, or return the one that this process has loaded.

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
    device, files = find_device(device), find_transformer(model, parameter)

    def load() -> LoadedHead:
        import torch
        import transformers

        with quiet_loading(parameter, files.path, kind):
            tokenizer = transformers.AutoTokenizer.from_pretrained(files.path, local_files_only=True)
            head, report = getattr(transformers, auto_class).from_pretrained(
                files.path, local_files_only=True, dtype=torch.float32, output_loading_info=True
            )
        missing = sorted(report["missing_keys"]) + sorted(map(str, report["mismatched_keys"]))
        if missing:
            raise ValueError(
                f"{parameter}: {files.path} has no trained weights for {kind}: {missing[0]} and {len(missing) - 1} "
                "more are missing, and would be random. Pass a model that was saved with this head."
            )
        return LoadedHead(head.eval().to(device), tokenizer, files.identity, threading.RLock())

    return load_once((auto_class, files.identity, device), load)
