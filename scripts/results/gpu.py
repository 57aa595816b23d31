"""On a GPU: embeddings by batch size, one set of 10**6, gruen by batch size, beside SentenceTransformer in the same run.

python -m scripts.results.gpu OUT
"""

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import sentence_transformers
import torch
import transformers
from sentence_transformers import SentenceTransformer
from vendi_score.vendi import score_dual

from scripts.benchmarks import inputs
from text_metrics import load
from text_metrics.metrics._core import core_encoder, core_models

FOLDER = str(core_models.find_model(core_models.DEFAULT_MODEL).path)
rows = []


def timed(name, n, call, repeat=2):
    """Print the fastest of some calls, and the most memory of the GPU."""
    times = []
    torch.cuda.reset_peak_memory_stats()
    for _ in range(repeat):
        torch.cuda.synchronize()
        start = time.perf_counter()
        value = call()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    gb = torch.cuda.max_memory_allocated() / 2**30
    rows.append({"name": name, "n": n, "seconds": min(times), "gpu_gb": gb})
    print(f"{name}, n = {n}: {min(times):.3f} s, {gb:.2f} GB", flush=True)
    return value


versions = [torch.__version__, sentence_transformers.__version__, transformers.__version__]
print(*versions, torch.cuda.get_device_name(), flush=True)
peer = SentenceTransformer(FOLDER, device="cuda", model_kwargs={"dtype": torch.float32})
real, inputs.N_CAPTIONS = inputs.captions(20_000), 60_000
inputs._all_captions.cache_clear()
import os

os.environ.pop("METRICS_TEST_DATA")
made = inputs.different_captions(50_000)


def encode(texts, batch_size=None):
    return core_encoder.encode(texts, core_encoder.EncoderSettings(batch_size=batch_size))[0]


encode(made[:2000]), peer.encode(made[:2000], show_progress_bar=False)
for kind, texts in (("COCO", list(dict.fromkeys(real))[:10_000]), ("made", made)):
    for size in (None, 32, 256, 1024, 4096):
        a = timed(f"encode {kind}, batch_size={size}", len(texts), lambda: encode(texts, size), 1 if size == 32 else 2)
    for size in (32, 1024):
        b = timed(f"SentenceTransformer {kind}, batch_size={size}", len(texts), lambda: peer.encode(texts, batch_size=size, show_progress_bar=False), 1 if size == 32 else 2)
    print("largest difference", np.abs(a - b).max(), flush=True)
metric = load("vendi_embed")
for n in (100_000, 1_000_000):
    given = inputs.one_set(n, np.float32)
    v = timed("one set, numpy", n, lambda: metric.compute(**given)["vendi_embed"])
    tensor = torch.from_numpy(given["embeddings"]).cuda()
    w = timed("one set, tensor on the GPU", n, lambda: metric.compute(predictions=given["predictions"], embeddings=tensor)["vendi_embed"])
    x = timed("score_dual", n, lambda: score_dual(given["embeddings"]), 1)
    print("values", v, w, x, flush=True)
gruen, given = load("gruen"), inputs.five_sentences(2000)
on_cpu = gruen.compute(predictions=given["predictions"][:100], device="cpu")["scores"]
gruen.compute(predictions=given["predictions"][:100])
for size in (None, 32, 256, 1024, 4096):
    scores = timed(f"gruen, batch_size={size}", 2000, lambda: gruen.compute(**given, batch_size=size)["scores"], 1 if size == 32 else 2)
print("gruen, largest difference from the CPU", np.abs(np.subtract(scores[:100], on_cpu)).max(), flush=True)
chamfer, given = load("chamfer_diversity"), inputs.one_set(20_000, np.float32)
gpu = timed("chamfer", 20_000, lambda: chamfer.compute(**given, device="cuda")["chamfer_diversity"])
cpu = timed("chamfer on the CPU", 20_000, lambda: chamfer.compute(**given, device="cpu")["chamfer_diversity"])
print("values", gpu, cpu, flush=True)
path = inputs.file_of_sets(made)
COMMAND = [sys.executable, "-m", "text_metrics", "score", str(path), "--metric", "vendi_embed", "--text-key", "generations"]
COMMAND += ["--restart", "--quiet", "--out", "/tmp/scores.jsonl"]
timed("score", len(made), lambda: subprocess.run(COMMAND, check=True, stdout=subprocess.DEVNULL))
PEER = """import sys, pandas
from sentence_transformers import SentenceTransformer
f = pandas.read_json(sys.argv[1], lines=True)
m = SentenceTransformer(sys.argv[2], device="cuda", model_kwargs={"dtype": "float32"})
e = m.encode([t for row in f.generations for t in row], show_progress_bar=False, batch_size=int(sys.argv[3]))
"""
for size in ("32", "1024"):
    timed(f"pandas and SentenceTransformer, batch_size={size}", len(made), lambda: subprocess.run([sys.executable, "-c", PEER, str(path), FOLDER, size], check=True), 1)
Path(sys.argv[1], "gpu.json").write_text(json.dumps(rows))
