"""The default sentence encoder, all-MiniLM-L6-v2, in torch's own modules, with optional low-rank adapters.

It needs neither sentence-transformers nor transformers, whose imports take longer than importing torch.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .core_models import load_once

_SIZE, _N_LAYERS, _N_HEADS, _INNER_SIZE, _EPSILON = 384, 6, 12, 1536, 1e-12
# Most tokens of a text, special tokens included.
_MAX_TOKENS = 256
# BERT's modules, which name its weights and adapters, and the corresponding modules of the network here.
_EMBEDDING_MODULES = {
    "embeddings.word_embeddings": "words",
    "embeddings.position_embeddings": "positions",
    "embeddings.token_type_embeddings": "types",
    "embeddings.LayerNorm": "norm",
}
_BERT_LAYER = "encoder.layer."
_LAYER_MODULES = {
    "attention.output.dense": "self_attn.out_proj",
    "attention.output.LayerNorm": "norm1",
    "intermediate.dense": "linear1",
    "output.dense": "linear2",
    "output.LayerNorm": "norm2",
}
# torch concatenates the three projections of attention.
_PROJECTIONS = ("attention.self.query", "attention.self.key", "attention.self.value")
# Weights of the file that no embedding of a text needs.
_UNUSED_WEIGHTS = ("pooler.", "embeddings.position_ids")


class MiniLM:
    """The default sentence encoder, with the interface of a SentenceTransformer that `encode` uses.

    network : nn.ModuleDict that `hidden_states` reads, in float32, without gradients
    tokenizer : Tokenizer of the library `tokenizers`, without padding and truncation
    max_seq_length : most tokens that it reads of a text, special tokens included
    device : torch.device of the network
    """

    max_seq_length = _MAX_TOKENS

    def __init__(self, weights: dict[str, Any], tokenizer: Any, device: str) -> None:
        import torch

        self.network = build_network(weights).to(device)
        self.tokenizer = tokenizer
        self.device = torch.device(device)

    def encode(self, texts: list[str], batch_size: int = 0, show_progress_bar: bool = False) -> np.ndarray:
        """Embed n texts: (n, 384), float32, of unit length. Texts that are too long are cut.

        As of a SentenceTransformer, but always in one batch, and without a progress bar.
        """
        import torch
        from torch.nn import functional

        tokens = [cut_tokens(encoding.ids) for encoding in self.tokenizer.encode_batch(texts)]
        with torch.inference_mode():
            ids, mask = pad_tokens(tokens, self.device)
            hidden = hidden_states(self.network, ids, mask)
            weights = mask.unsqueeze(-1).to(hidden.dtype)
            mean = (hidden * weights).sum(1) / weights.sum(1)
            return functional.normalize(mean).cpu().numpy()

    def with_adapters(self, adapters: dict[str, Any]) -> "MiniLM":
        """Return an encoder whose weights have low-rank adapters added; it shares all other weights with this one.

        adapters : by the names of BERT's modules, such as "encoder.layer.4.attention.self.query", tensors `<name>.up`,
            (out, r), and `<name>.down`, (r, in), of any floating-point type
        """
        import torch

        weights = dict(self.network.state_dict())
        changed = set()
        with torch.no_grad():
            for module in sorted({name.rpartition(".")[0] for name in adapters}):
                name, rows = weight_place(f"{module}.weight")
                if name not in changed:
                    weights[name] = weights[name].clone()
                    changed.add(name)
                up = adapters[f"{module}.up"].to(self.device, torch.float32)
                down = adapters[f"{module}.down"].to(self.device, torch.float32)
                weights[name][rows] += up @ down
        return MiniLM(weights, self.tokenizer, str(self.device))


def load_minilm(files: Any, device: str) -> MiniLM:
    """Load the default encoder from the folder that `find_model` has found and checked, once in a process."""

    def load() -> MiniLM:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(files.path / "tokenizer.json"))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        return MiniLM(read_weights(files.path / "model.safetensors"), tokenizer, device)

    return load_once((files.identity, device), load)


def read_weights(path: Path) -> dict[str, Any]:
    """Map the weights of BERT into memory, by their names in our network."""
    import torch
    from safetensors import safe_open

    weights: dict[str, Any] = {}
    # What is concatenated is not read from the mapping that stays, or memory would hold it twice.
    with safe_open(path, framework="pt") as file, safe_open(path, framework="np") as copied:
        for name in file.keys():  # noqa: SIM118 - it is not a dictionary
            if name.startswith(_UNUSED_WEIGHTS):
                continue
            place, rows = weight_place(name)
            if rows == slice(None):
                weights[place] = file.get_tensor(name)
            else:
                part = torch.from_numpy(copied.get_tensor(name))
                whole = weights.setdefault(place, torch.empty(len(_PROJECTIONS) * _SIZE, *part.shape[1:]))
                whole[rows] = part
    return weights


def weight_place(name: str) -> tuple[str, slice]:
    """Map the name of a weight or bias of BERT to its name in our network, and to its rows there."""
    module, _, kind = name.rpartition(".")
    if module in _EMBEDDING_MODULES:
        return f"{_EMBEDDING_MODULES[module]}.{kind}", slice(None)
    number, _, part = module.removeprefix(_BERT_LAYER).partition(".")
    layer = f"encoder.layers.{number}"
    if part in _PROJECTIONS:
        start = _PROJECTIONS.index(part) * _SIZE
        return f"{layer}.self_attn.in_proj_{kind}", slice(start, start + _SIZE)
    return f"{layer}.{_LAYER_MODULES[part]}.{kind}", slice(None)


def build_network(weights: dict[str, Any]) -> Any:
    """Build the network, an nn.ModuleDict without gradients, around its weights without copying them."""
    from torch import nn
    from torch.nn import functional

    # Nothing is allocated nor initialized: all weights are assigned.
    empty: dict[str, Any] = {"device": "meta"}
    # torch recognizes "gelu", and computes its approximation by tanh on a GPU.
    layer = nn.TransformerEncoderLayer(
        _SIZE,
        _N_HEADS,
        _INNER_SIZE,
        0.0,
        lambda values: functional.gelu(values),
        layer_norm_eps=_EPSILON,
        batch_first=True,
        **empty,
    )
    parts = {
        # On meta, an embedding would import torch's compiler.
        "words": nn.Embedding.from_pretrained(weights["words.weight"]),
        "positions": nn.Embedding.from_pretrained(weights["positions.weight"]),
        "types": nn.Embedding.from_pretrained(weights["types.weight"]),
        "norm": nn.LayerNorm(_SIZE, _EPSILON, **empty),
        "encoder": nn.TransformerEncoder(layer, _N_LAYERS, enable_nested_tensor=False),
    }
    network = nn.ModuleDict(parts)
    network.load_state_dict(weights, assign=True)
    return network.eval().requires_grad_(False)


def hidden_states(network: Any, ids: Any, mask: Any) -> Any:
    """Return the contextual embeddings of b sequences of t tokens: (b, t, 384); padding is undefined.

    ids, mask : integer tensors of shape (b, t); the mask is 0 for padding
    """
    embeddings = network["words"](ids) + network["types"].weight[0] + network["positions"].weight[: ids.shape[1]]
    padding = mask == 0
    bias = attention_bias(padding, embeddings.dtype) if padding.any() else None
    return network["encoder"](network["norm"](embeddings), mask=bias, is_causal=False)


def attention_bias(padding: Any, dtype: Any) -> Any:
    """Return what is added to the attention of b sequences of t tokens: (b * heads, t, t), -inf towards padding.

    torch would make the same of `src_key_padding_mask`, and import sympy to check its shape. No row is copied.

    padding : bool tensor of shape (b, t)
    """
    import torch

    rows = torch.zeros_like(padding, dtype=dtype).masked_fill_(padding, -torch.inf)
    return rows.repeat_interleave(_N_HEADS, 0).unsqueeze(1).expand(-1, padding.shape[1], -1)


def pad_tokens(tokens: Sequence[Iterable[int]], device: Any) -> tuple[Any, Any]:
    """Pad b sequences of tokens to the longest: ids and mask, each an integer tensor of shape (b, t)."""
    import torch
    from torch.nn.utils.rnn import pad_sequence

    ids = [torch.tensor(sequence, dtype=torch.long) for sequence in tokens]
    mask = [torch.ones_like(sequence) for sequence in ids]
    padded_ids = pad_sequence(ids, batch_first=True).to(device)
    padded_mask = pad_sequence(mask, batch_first=True).to(device)
    return padded_ids, padded_mask


def cut_tokens(ids: list[int]) -> list[int]:
    """Cut the tokens of a text to what the encoder reads; the last one ends a text."""
    return ids if len(ids) <= _MAX_TOKENS else [*ids[: _MAX_TOKENS - 1], ids[-1]]
