"""BERT without padding: the tokens of many texts side by side in one matrix, and attention text by text.

In float32 it is transformers' arithmetic in another order, and gives the same numbers to rounding. Where nothing is
asked for, matrix products are of whole numbers of 16 bits, if the processor is faster at those: embeddings differ from
float32's by cosines of less than 1e-7. Products in bfloat16 or int8 are the caller's choice. Every number is rounded by
itself, or with those of its own token, so a text's result does not depend on the texts beside it.
"""

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from .core_integers import Layers, Linear, are_compiled, embed_tokens, fits, has_kernels, round_linear, tokens_at_once

# Tokens in a batch: enough to keep a processor busy, few enough to stay in its cache.
TOKENS = 2048
# How near the fast path must come to the slow one, by cosine, on a few texts when a model is loaded.
_AGREEMENT = {None: 0.99999, "float32": 0.99999, "bfloat16": 0.99, "int8": 0.9}
# Of whole numbers, where products are of those.
_BITS = {None: 16, "int8": 8}
_PROBES = ("", "A word.", " Upper and lower Case, with  blanks\tand an accent: café ", "one two three four five " * 8)
# Tokens that are worth the seconds that kernels take to compile, once on a machine. Fewer are torch's work until then.
_WORTH_COMPILING = 16_384
# What may follow the transformer in a sentence encoder: modules that work on each text by itself.
_TAIL = ("Pooling", "Dense", "Normalize")

_Linear = Callable[[torch.Tensor], torch.Tensor]


class UnpaddedBert(nn.Module):
    """The body of a BERT on the CPU, in place of transformers' own: `model.bert = UnpaddedBert(model.bert)`.

    Parameters
    ----------
    bert : a transformers BertModel, in float32, for which `is_known` is true
    precision : "float32", "bfloat16" or "int8": of the matrix products; everything else is float32. If None, what is
        fastest of float32 and what is as good.
    """

    def __init__(self, bert: Any, precision: str | None = None) -> None:
        super().__init__()
        self.config, self.embeddings, self.pooler = bert.config, bert.embeddings, bert.pooler
        self._precision, self._integers, self._make_integers = precision, None, None
        config = bert.config
        if precision in _BITS and fits(config.hidden_size, config.intermediate_size, config.num_attention_heads):
            self._make_integers = functools.partial(_integer_layers, bert, _BITS[precision])
            if are_compiled(_BITS[precision]):
                self._integers, self._make_integers = self._make_integers(), None
        table = bert.embeddings
        self._words = table.word_embeddings.weight.detach()
        self._places = table.position_embeddings.weight.detach() + table.token_type_embeddings.weight.detach()[0]
        self._first_norm = _norm(table.LayerNorm)
        self._heads = bert.config.num_attention_heads
        in_torch = () if self._integers else bert.encoder.layer
        self._layers = [_layer(layer, precision or "float32") for layer in in_torch]

    @property
    def tokens_at_once(self) -> int:
        """How many tokens `tokens` is best called with."""
        return TOKENS if self._integers is None else tokens_at_once(torch.get_num_threads())

    def prepare(self, n_tokens: int) -> None:
        """Compile kernels that are not yet compiled, if so many tokens to come are worth it.

        What comes after it may differ from what came before by as much as whole numbers do from floats.
        """
        if self._make_integers is None or n_tokens < _WORTH_COMPILING:
            return
        make, self._make_integers = self._make_integers, None
        integers = make()
        if integers is None:
            return
        ids = torch.arange(24) * 7 % len(self._words)
        with torch.inference_mode():
            expected, found = self.tokens(ids, [12, 12]), _by_integers(integers, ids, [12, 12])
        if float(functional.cosine_similarity(found, expected).min()) >= _AGREEMENT[self._precision]:
            # A thread that is under way in torch keeps the layers that it began with.
            self._integers, self._layers = integers, []

    def tokens(self, ids: torch.Tensor, lengths: Sequence[int]) -> torch.Tensor:
        """Give the contextual embeddings of texts that lie one behind the other: (t,) to (t, size), float32.

        Parameters
        ----------
        ids : the token ids of all texts
        lengths : of each text; equal ones should be neighbours, since those take part in one attention
        """
        if self._integers:
            return _by_integers(self._integers, ids, lengths)
        runs = [(len(list(group)), length) for length, group in itertools.groupby(lengths) if length]
        if not runs:
            return self._words.new_empty(0, self._words.shape[1])
        places = torch.cat([torch.arange(length).repeat(n) for n, length in runs])
        hidden = self._first_norm(functional.embedding(ids, self._words).add_(self._places[places]))
        for project, attended, attention_norm, widen, narrow, output_norm in self._layers:
            hidden = attention_norm(attended(self._attend(project(hidden), runs)).add_(hidden))
            hidden = output_norm(narrow(widen(hidden)).add_(hidden))
        return hidden

    def means(self, ids: torch.Tensor, lengths: Sequence[int]) -> torch.Tensor:
        """Give the means of what `tokens` gives over each text: (t,) to (n, size), float32."""
        if self._integers:
            return _by_integers(self._integers, ids, lengths, is_pooled=True)
        return torch.cat([rows.mean(1) for rows in _of_equal_length(self.tokens(ids, lengths), lengths)])

    def _attend(self, projected: torch.Tensor, runs: list[tuple[int, int]]) -> torch.Tensor:
        """Let the tokens of each text attend to each other: queries, keys and values, (t, 3 * size), to (t, size)."""
        size = projected.shape[1] // 3
        mixed = projected.new_empty(len(projected), size)
        start = 0
        for n, length in runs:
            rows = slice(start, start := start + n * length)
            query, key, value = projected[rows].view(n, length, 3, self._heads, -1).permute(2, 0, 3, 1, 4)
            context = functional.scaled_dot_product_attention(query, key, value)
            mixed[rows].view(n, length, self._heads, -1).copy_(context.transpose(1, 2))
        return mixed

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        **settings: Any,
    ) -> Any:
        """Do as transformers' model does for texts of the first type, padded behind: (b, t) to (b, t, size)."""
        from transformers.modeling_outputs import BaseModelOutputWithPoolingAndCrossAttentions as Output

        if token_type_ids is not None and token_type_ids.any():
            raise ValueError("token_type_ids must be 0: this model reads one text at a time.")
        is_token = torch.ones_like(input_ids, dtype=torch.bool) if attention_mask is None else attention_mask.bool()
        # In the number format of the heads.
        hidden = self.embeddings.word_embeddings.weight.new_zeros(*input_ids.shape, self._words.shape[1])
        found = self.tokens(input_ids[is_token], is_token.sum(1).tolist())
        hidden[is_token] = found.to(hidden.dtype)
        return Output(last_hidden_state=hidden, pooler_output=None if self.pooler is None else self.pooler(hidden))


class UnpaddedEncoder:
    """A sentence encoder of sentence-transformers, on the CPU, with its transformer unpadded.

    Tokenizing keeps no state, so threads may tokenize at once.
    """

    def __init__(self, encoder: Any, precision: str | None) -> None:
        from tokenizers import Tokenizer

        transformer, pooling, *rest = encoder
        # Without a product by the mask; where nothing that follows wants more than that.
        self._is_mean = getattr(pooling, "pooling_mode", None) == "mean" and all(
            getattr(module, "module_input_name", "sentence_embedding") == "sentence_embedding"
            and type(module).__name__ != "Pooling"
            for module in rest
        )
        self._tail = rest if self._is_mean else [pooling, *rest]
        self._body = UnpaddedBert(transformer.auto_model, precision).eval()
        self._limit = int(encoder.max_seq_length)
        # Copies, since a tokenizer of transformers changes the settings of its own from call to call.
        own = encoder.tokenizer
        self._tokenizer, self._cutting = (Tokenizer.from_str(own.backend_tokenizer.to_str()) for _ in range(2))
        for tokenizer in (self._tokenizer, self._cutting):
            tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._cutting.enable_truncation(self._limit, direction=own.truncation_side)

    @property
    def tokens_at_once(self) -> int:
        """How many tokens `embed` is best called with."""
        return self._body.tokens_at_once

    def prepare(self, n_tokens: int) -> None:
        """Do what is worth doing before so many tokens."""
        self._body.prepare(n_tokens)

    def tokenize(self, texts: list[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Tokenize texts.

        Returns
        -------
        ids : ndarray of shape (t,), int32: what the model reads of all texts, one behind the other
        lengths : ndarray of shape (n,), int64: how much of it is of each text
        counts : ndarray of shape (n,), int64: how many tokens each text has, read or not
        """
        ids = [encoding.ids for encoding in self._tokenizer.encode_batch_fast(texts)]
        counts = np.fromiter(map(len, ids), np.int64, len(ids))
        for long in np.flatnonzero(counts > self._limit):
            ids[long] = self._cutting.encode(texts[long]).ids
        lengths = np.minimum(counts, self._limit)
        return np.fromiter(itertools.chain.from_iterable(ids), np.int32, lengths.sum()), lengths, counts

    def embed(self, ids: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Embed texts that lie one behind the other, by their token ids: (n, d), float32."""
        sizes = lengths.tolist()
        with torch.inference_mode():
            if self._is_mean:
                return self._finished({"sentence_embedding": self._body.means(torch.from_numpy(ids), sizes)})
            hidden = self._body.tokens(torch.from_numpy(ids), sizes)
            masks = ((rows, torch.ones(rows.shape[:2], dtype=torch.int64)) for rows in _of_equal_length(hidden, sizes))
            parts = [self._finished({"token_embeddings": rows, "attention_mask": mask}) for rows, mask in masks]
            return np.concatenate(parts)

    def _finished(self, features: Any) -> np.ndarray:
        for module in self._tail:
            features = module(features)
        found: np.ndarray = features["sentence_embedding"].float().numpy()
        return found

    def agrees(self, encoder: Any, precision: str | None) -> bool:
        """Say whether it gives what the encoder gives that it was made of, tried on a few texts."""
        long = "word " * (2 * self._limit)
        own = encoder.tokenizer(long, truncation=True, max_length=self._limit)["input_ids"]
        if self.tokenize([long])[0].tolist() != own:
            return False
        expected = encoder.encode(list(_PROBES), show_progress_bar=False).astype(np.float64)
        ids, lengths, _ = self.tokenize(list(_PROBES))
        found = self.embed(ids, lengths).astype(np.float64)
        if found.shape != expected.shape or not np.isfinite(found).all():
            return False
        sizes = np.linalg.norm(found, axis=1), np.linalg.norm(expected, axis=1)
        cosines = (found * expected).sum(1) / np.maximum(sizes[0] * sizes[1], np.finfo(np.float64).tiny)
        near = _AGREEMENT[precision]
        return bool(cosines.min() >= near and np.abs(sizes[0] / sizes[1] - 1).max() <= 1 - near)


def _of_equal_length(hidden: torch.Tensor, lengths: Sequence[int]) -> Iterator[torch.Tensor]:
    """Cut the rows of texts into runs of texts of equal length: each (n, t, size)."""
    start = 0
    for length, group in itertools.groupby(lengths):
        n = len(list(group))
        yield hidden[start : (start := start + n * length)].view(n, length, -1)


def unpadded_encoder(encoder: Any, precision: str | None) -> UnpaddedEncoder | None:
    """Make the fast form of a sentence encoder in float32 on the CPU; None where it is of no kind that is known here.

    Parameters
    ----------
    precision : "float32", "bfloat16" or "int8"; the fastest of float32 and what is as good if None
    """
    from tokenizers import Tokenizer

    transformer, *tail = encoder
    kinds = [(type(module).__module__.split(".")[0], type(module).__name__) for module in encoder]
    is_known_encoder = (
        kinds[0] == ("sentence_transformers", "Transformer")
        and all(package == "sentence_transformers" and kind in _TAIL for package, kind in kinds[1:])
        and bool(tail)
        and is_known(transformer.auto_model)
        and isinstance(getattr(encoder.tokenizer, "backend_tokenizer", None), Tokenizer)
        and not encoder.default_prompt_name
        and not getattr(transformer, "processing_kwargs", None)
        and encoder.truncate_dim is None
        and encoder.max_seq_length is not None
        and encoder.max_seq_length <= transformer.auto_model.config.max_position_embeddings
    )
    if precision not in _AGREEMENT or not is_known_encoder:
        return None
    fast = UnpaddedEncoder(encoder, precision)
    if fast.agrees(encoder, precision):
        return fast
    return unpadded_encoder(encoder, "float32") if precision is None else None


def unpad_body(model: Any, precision: str | None) -> bool:
    """Put an unpadded body in the place of that of a model with heads, in float32 on the CPU.

    Parameters
    ----------
    model : a module with a BertModel as `bert`, which its heads use by its outputs alone
    precision : of the body: "float32", "bfloat16" or "int8"; the fastest of float32 and what is as good if None

    Returns
    -------
    bool
        Whether it was done: not where the body is of no kind that is known here.
    """
    bert: Any = getattr(model, "bert", None)
    if precision not in _AGREEMENT or not is_known(bert):
        return False
    body = UnpaddedBert(bert, precision).eval()
    ids = torch.arange(24).reshape(2, 12) * 7 % bert.config.vocab_size
    is_token = torch.arange(12) < torch.tensor([[12], [5]])
    with torch.inference_mode():
        expected, found = (
            part(input_ids=ids, attention_mask=is_token.long()).last_hidden_state[is_token].double()
            for part in (bert.eval(), body)
        )
    if not float(functional.cosine_similarity(found, expected).min()) >= _AGREEMENT[precision]:
        return precision is None and unpad_body(model, "float32")
    model.bert = body
    return True


def is_known(model: Any) -> bool:
    """Say whether a transformer is a plain BERT in float32 on the CPU: absolute positions, gelu, no decoder."""
    from transformers import BertModel

    if type(model) is not BertModel:
        return False
    config, weights = model.config, list(model.parameters())
    return (
        config.hidden_act == "gelu"
        and getattr(config, "position_embedding_type", "absolute") == "absolute"
        and not config.is_decoder
        and not config.add_cross_attention
        and all(weight.dtype == torch.float32 and weight.device.type == "cpu" for weight in weights)
    )


def prepare(model: Any, n_tokens: int) -> None:
    """Do what is worth doing before so many tokens go through a model, if its body is unpadded."""
    body = getattr(model, "bert", None)
    if isinstance(body, UnpaddedBert):
        body.prepare(n_tokens)


def _by_integers(layers: Layers, ids: torch.Tensor, lengths: Sequence[int], is_pooled: bool = False) -> torch.Tensor:
    n_threads = torch.get_num_threads()
    return torch.from_numpy(embed_tokens(layers, ids.int().numpy(), lengths, n_threads, is_pooled=is_pooled))


def _integer_layers(bert: Any, bits: int) -> Layers | None:
    """Round a BERT whose sizes fit to whole numbers; None where kernels do not run here."""
    if not has_kernels(bits):
        return None
    config, layers, table = bert.config, bert.encoder.layer, bert.embeddings

    def numbers(weight: torch.Tensor) -> np.ndarray:
        return np.ascontiguousarray(weight.detach().numpy())

    def linear(parts: list[list[Any]], first: int = 0) -> Linear:
        """Put parts of a layer that read the same side by side, and round those of all layers."""
        weights, biases = (
            [np.concatenate([numbers(getattr(part, name)) for part in own]) for own in parts]
            for name in ("weight", "bias")
        )
        return round_linear(weights, biases, bits, first)

    def norm(*norms: Any) -> np.ndarray:
        return np.stack([numbers(weight) for norm in norms for weight in (norm.weight, norm.bias)])

    return Layers(
        words=numbers(table.word_embeddings.weight),
        places=numbers(table.position_embeddings.weight + table.token_type_embeddings.weight[0]),
        first_norm=norm(table.LayerNorm),
        norms=np.stack([norm(layer.attention.output.LayerNorm, layer.output.LayerNorm) for layer in layers]),
        project=linear(
            [[getattr(layer.attention.self, name) for name in ("query", "key", "value")] for layer in layers],
            first=2 * config.hidden_size,
        ),
        attended=linear([[layer.attention.output.dense] for layer in layers]),
        widen=linear([[layer.intermediate.dense] for layer in layers]),
        narrow=linear([[layer.output.dense] for layer in layers]),
        heads=config.num_attention_heads,
        epsilon=config.layer_norm_eps,
        bits=bits,
    )


def _layer(layer: Any, precision: str) -> tuple[Callable[[torch.Tensor], torch.Tensor], ...]:
    own, output = layer.attention.self, layer.attention.output
    parts = (own.query, own.key, own.value)
    return (
        _fast_linear(torch.cat([part.weight for part in parts]), torch.cat([part.bias for part in parts]), precision),
        _fast_linear(output.dense.weight, output.dense.bias, precision),
        _norm(output.LayerNorm),
        _fast_linear(layer.intermediate.dense.weight, layer.intermediate.dense.bias, precision, gelu=True),
        _fast_linear(layer.output.dense.weight, layer.output.dense.bias, precision),
        _norm(layer.output.LayerNorm),
    )


def _norm(norm: Any) -> Callable[[torch.Tensor], torch.Tensor]:
    weight, bias = norm.weight.detach(), norm.bias.detach()
    return lambda rows: functional.layer_norm(rows, weight.shape, weight, bias, norm.eps)


def _fast_linear(weight: torch.Tensor, bias: torch.Tensor, precision: str, gelu: bool = False) -> _Linear:
    """Make a linear layer, (t, k) to (t, n), with gelu behind it if asked: then what follows must be such a layer."""
    return _MAKERS[precision](weight.detach(), bias.detach(), gelu, _has_kernel(precision))


def _float32(weight: torch.Tensor, bias: torch.Tensor, gelu: bool, fast: bool) -> _Linear:
    if not fast:
        return lambda rows: _gelu(functional.linear(rows, weight, bias), gelu)
    packed = torch.ops.mkldnn._reorder_linear_weight(weight, TOKENS)
    kind: tuple[str, list[float], str] = ("gelu", [], "none") if gelu else ("none", [], "")
    return lambda rows: torch.ops.mkldnn._linear_pointwise(rows, packed, bias, *kind)


def _bfloat16(weight: torch.Tensor, bias: torch.Tensor, gelu: bool, fast: bool) -> _Linear:
    """Round what is multiplied, and what comes out, to bfloat16; sums are float32."""
    rounded = weight.bfloat16()
    if not fast:
        widened = rounded.float()
        return lambda rows: _gelu(functional.linear(rows.bfloat16().float(), widened, bias), gelu).bfloat16().float()
    packed = torch.ops.mkldnn._reorder_linear_weight(rounded, TOKENS)
    # The wide layer's output is the next product's input as it is.
    kind: tuple[str, list[float], str] = ("gelu", [], "none") if gelu else ("none", [], "")
    return lambda rows: _widened(torch.ops.mkldnn._linear_pointwise(rows.bfloat16(), packed, bias, *kind), not gelu)


def _int8(weight: torch.Tensor, bias: torch.Tensor, gelu: bool, fast: bool) -> _Linear:
    """Round weights by the scale of each output, and rows each by its own scale, to 255 steps; sums are exact."""
    scale = (weight.abs().amax(1) / 127).clamp(min=torch.finfo(torch.float32).tiny)
    steps = (weight / scale[:, None]).round()
    columns = steps.to(torch.int8).t()

    def run(rows: torch.Tensor) -> torch.Tensor:
        row_scale = (rows.abs().amax(1, keepdim=True) / 127).clamp_(min=torch.finfo(torch.float32).tiny)
        row_steps = (rows / row_scale).round_()
        product = (
            torch._int_mm(row_steps.to(torch.int8), columns).float() if fast else functional.linear(row_steps, steps)
        )
        # One after the other: a fused product and sum is several times slower with a scale for each row.
        return _gelu(product.mul_(scale).mul_(row_scale).add_(bias), gelu)

    return run


_MAKERS = {"float32": _float32, "bfloat16": _bfloat16, "int8": _int8}


def _widened(rows: torch.Tensor, is_wanted: bool) -> torch.Tensor:
    return rows.float() if is_wanted else rows


def _gelu(rows: torch.Tensor, is_wanted: bool) -> torch.Tensor:
    return functional.gelu(rows) if is_wanted else rows


@functools.cache
def _has_kernel(precision: str) -> bool:
    """Say whether torch's own fast kernels do here; they are not public, so they are tried once.

    Without them the same numbers come from products in float32.
    """
    try:
        if precision == "bfloat16" and not torch.ops.mkldnn._is_mkldnn_bf16_supported():
            return False
        # Without VNNI, int8 products saturate.
        if precision == "int8" and not torch.cpu._is_vnni_supported():
            return False
        numbers = torch.Generator().manual_seed(0)
        rows, weight, bias = (torch.randn(*shape, generator=numbers) for shape in ((40, 64), (48, 64), (48,)))
        for gelu in (False, True):
            slow, fast = (_MAKERS[precision](weight, bias, gelu, kernel)(rows) for kernel in (False, True))
            if not torch.allclose(slow, fast.float(), rtol=0.02 if precision == "bfloat16" else 1e-4, atol=1e-4):
                return False
    except (AttributeError, NotImplementedError, RuntimeError, TypeError):
        return False
    return True
