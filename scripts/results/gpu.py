"""On a GPU: encode, one set of 10**6, score end to end, beside SentenceTransformer in the same run."""
import json, os, resource, subprocess, sys, time
import numpy as np, torch
from scripts.benchmarks import inputs
from sentence_transformers import SentenceTransformer
import sentence_transformers, transformers
from text_metrics import load
from text_metrics.metrics._core import core_encoder
folder, out = sys.argv[1], sys.argv[2]
sizes = [int(x) for x in sys.argv[3].split(",")]; n_set = int(sys.argv[4]); n_rows = int(sys.argv[5])
cuda = torch.cuda.is_available()
device = "cuda" if cuda else "cpu"
rows = []
def sync():
    if cuda: torch.cuda.synchronize()
def timed(name, n, f, repeat=3, **extra):
    times = []
    if cuda: torch.cuda.reset_peak_memory_stats()
    for _ in range(repeat):
        sync(); t = time.perf_counter(); value = f(); sync(); times.append(time.perf_counter() - t)
    row = dict(name=name, n=n, seconds=min(times), times=times, gpu_gb=torch.cuda.max_memory_allocated() / 2**30 if cuda else 0, **extra)
    rows.append(row); print(json.dumps(row), flush=True)
    return value
print(torch.__version__, sentence_transformers.__version__, transformers.__version__, torch.cuda.get_device_name() if cuda else "cpu", flush=True)
settings = core_encoder.EncoderSettings(model=folder)
peer = SentenceTransformer(folder, device=device, model_kwargs={"dtype": torch.float32})
half = SentenceTransformer(folder, device=device, model_kwargs={"dtype": torch.bfloat16})
core_encoder.encode(inputs.captions(2000), settings); peer.encode(inputs.captions(2000), show_progress_bar=False)
for n in sizes:
    texts = inputs.captions(n)
    a = timed("encode", n, lambda: core_encoder.encode(texts, settings)[0], 2 if n > 20000 else 3)
    b = timed("encode peer, batch 32", n, lambda: peer.encode(texts, show_progress_bar=False), 1 if n > 20000 else 2)
    c = timed("encode peer, batch 1024", n, lambda: peer.encode(texts, batch_size=1024, show_progress_bar=False), 2)
    a = np.asarray(a.cpu() if hasattr(a, "cpu") else a)
    print("dtype", a.dtype, "largest difference", np.abs(a - b).max(), np.abs(b - c).max(), flush=True)
    d = timed("encode bfloat16 object", n, lambda: core_encoder.encode(texts, core_encoder.EncoderSettings(model=half))[0], 1)
    print("bfloat16: largest difference", np.abs(np.asarray(d, dtype=np.float32) - b).max(), flush=True)
metric = load("vendi_embed")
for n in (n_set // 10, n_set):
    given = inputs.one_set(n, np.float32)
    v = timed("one set, numpy float32", n, lambda: metric.compute(**given)["vendi_embed"], 2)
    tensor = torch.from_numpy(given["embeddings"]).to(device)
    w = timed("one set, tensor on the device", n, lambda: metric.compute(predictions=given["predictions"], embeddings=tensor)["vendi_embed"], 2)
    from vendi_score.vendi import score_dual
    x = timed("one set, peer score_dual", n, lambda: score_dual(given["embeddings"]), 1)
    print("values", v, w, x, flush=True)
path = inputs.file_of_sets(inputs.captions(4 * n_rows))
def ours():
    subprocess.run([sys.executable, "-m", "text_metrics", "score", str(path), "--metric", "vendi_embed", "--text-key", "generations",
        "--setting", f"model={folder}", "--restart", "--quiet", "--out", "/tmp/scores.jsonl"], check=True, stdout=subprocess.DEVNULL)
PEER = "import sys, pandas\nfrom sentence_transformers import SentenceTransformer\nf = pandas.read_json(sys.argv[1], lines=True)\nm = SentenceTransformer(sys.argv[2], device=sys.argv[3], model_kwargs={'dtype': 'float32'})\ne = m.encode([t for row in f.generations for t in row], show_progress_bar=False)\n"
LOOP = PEER + "from vendi_score.vendi import score_X\nf['vendi'] = [score_X(x) for x in e.reshape(len(f), 4, -1)]\nf.to_json('/tmp/peer.jsonl', orient='records', lines=True)\n"
timed("score, the whole command", 4 * n_rows, ours, 2)
timed("pandas and SentenceTransformer.encode, the whole program", 4 * n_rows, lambda: subprocess.run([sys.executable, "-c", PEER, str(path), folder, device], check=True), 1)
timed("the same, and vendi-score in a loop", 4 * n_rows, lambda: subprocess.run([sys.executable, "-c", LOOP, str(path), folder, device], check=True), 1)
import pandas
a, b = pandas.read_json("/tmp/scores.jsonl", lines=True), pandas.read_json("/tmp/peer.jsonl", lines=True)
print(list(a.columns)[:12], "largest difference", np.abs(a[[c for c in a.columns if "vendi" in c and a[c].dtype == float][0]] - b.vendi).max())
json.dump(rows, open(os.path.join(out, "bench.json"), "w"))
