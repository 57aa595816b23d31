"""The encoders of docs/encoders.md, all made from one sentence-transformers model."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from text_metrics.metrics._core.core_models import DEFAULT_MODEL


class OnnxEncoder:
    """Run an exported sentence encoder in onnxruntime."""

    def __init__(self, graph: str, tokenizer: Any, threads: int = 0) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads  # 0: one for each core
        self.session = onnxruntime.InferenceSession(graph, options)
        self.tokenizer = tokenizer

    def encode(self, texts: list[str]) -> np.ndarray:
        """Embed n texts; (n, d)."""
        order = np.argsort([len(text) for text in texts])  # similar lengths in a batch need little padding
        parts = []
        for batch in np.array_split(order, len(texts) // 32 + 1):
            tokens = self.tokenizer([texts[i] for i in batch], padding=True, truncation=True, return_tensors="np")
            parts.append(self.session.run(None, dict(tokens))[0])
        return np.concatenate(parts)[np.argsort(order)]


class Sentences(torch.nn.Module):
    """Give the embeddings alone: a SentenceTransformer returns its tokens, too."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: dict[str, torch.Tensor]) -> torch.Tensor:
        """Run the model."""
        return self.model(tokens)["sentence_embedding"]


def export_onnx(folder: str, graph: str) -> Any:
    """Export a sentence-transformers model, pooling and normalization included; returns its tokenizer."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(folder, device="cpu")
    tokens = dict(model.tokenizer(["A text.", "A longer text."], padding=True, return_tensors="pt"))
    sizes = {name: {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC} for name in tokens}
    torch.onnx.export(
        Sentences(model).eval(),
        kwargs={"tokens": tokens},
        f=graph,
        input_names=list(tokens),
        dynamic_shapes={"tokens": sizes},
        external_data=False,
        dynamo=True,
        verbose=False,
    )
    return model.tokenizer


def quantize_onnx(graph: str, quantized: str) -> None:
    """Quantize the weights of a graph to 8-bit integers; activations are quantized as it runs."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(graph, quantized, weight_type=QuantType.QInt8, per_channel=True)


def make_plain(folder: str, scratch: Path, **model_kwargs: Any) -> Any:
    """Load the model as a SentenceTransformer of the caller's."""
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(folder, device="cpu", model_kwargs=model_kwargs)


def make_onnx(folder: str, scratch: Path) -> Any:
    """Export the model to onnxruntime."""
    tokenizer = export_onnx(folder, str(scratch / "encoder.onnx"))
    return OnnxEncoder(str(scratch / "encoder.onnx"), tokenizer, threads=1)


def make_onnx_int8(folder: str, scratch: Path) -> Any:
    """Export the model to onnxruntime, and quantize it."""
    graph, quantized = str(scratch / "to_quantize.onnx"), str(scratch / "encoder_int8.onnx")
    tokenizer = export_onnx(folder, graph)
    quantize_onnx(graph, quantized)
    return OnnxEncoder(quantized, tokenizer, threads=1)


def make_static(folder: str, scratch: Path) -> Any:
    """Distill the model into a static one."""
    from model2vec.distill import distill

    return distill(folder)


class Encoder(NamedTuple):
    """A row of the table: how it is named, and how it is made of a folder with the bundled model."""

    title: str
    make: Callable[[str, Path], Any]


ENCODERS = {
    "default": Encoder("default", lambda folder, scratch: DEFAULT_MODEL),
    "plain": Encoder("`SentenceTransformer`", make_plain),
    "bfloat16": Encoder("`SentenceTransformer`, bfloat16", partial(make_plain, dtype=torch.bfloat16)),
    "onnx": Encoder("onnxruntime, float32", make_onnx),
    "onnx_int8": Encoder("onnxruntime, dynamic int8", make_onnx_int8),
    "model2vec": Encoder("model2vec, distilled", make_static),
}
