"""A BERT with products of whole numbers: near the floats that they stand for, and each text by itself."""

import json
import math
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tqdm.auto import tqdm

from metrics._core import core_encoder, core_integer_kernels, core_integers, core_unpadded
from tests.conftest import SETS

needs_kernels = pytest.mark.skipif(
    not all(map(core_integers.has_kernels, (16, 8))),
    reason="the kernels need an x86 processor with AVX-512 VNNI, and numba",
)
BITS = {None: 16, "int8": 8}
LENGTHS = [1, 2, 15, 16, 17, 40, 3, 64, 7, 1]


def make_bert(seed=0, size=64, wide=128, heads=2, layers=2):
    from transformers import BertConfig, BertModel

    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=90,
        hidden_size=size,
        intermediate_size=wide,
        num_attention_heads=heads,
        num_hidden_layers=layers,
        max_position_embeddings=64,
        initializer_range=size**-0.5,
    )
    return BertModel(config).eval()


def make_ids(lengths, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).integers(0, 90, sum(lengths)).astype(np.int32))


def by_transformers(bert, ids, lengths):
    with torch.inference_mode():
        return torch.cat([bert(input_ids=one[None].long()).last_hidden_state[0] for one in ids.split(lengths)]).numpy()


def embed(bert, precision, ids, lengths):
    body = core_unpadded.UnpaddedBert(bert, precision)
    assert body._integers.bits == BITS[precision]
    return body.tokens(ids, lengths).numpy()


def farthest(found, expected):
    """The largest distance of a token's row, by the size of the row."""
    return (np.linalg.norm(found - expected, axis=1) / np.linalg.norm(expected, axis=1)).max()


@needs_kernels
@pytest.mark.parametrize(("precision", "near"), [(None, 1e-3), ("int8", 0.1)])
@pytest.mark.parametrize("sizes", [{}, {"size": 128, "heads": 8, "wide": 64}, {"size": 384, "heads": 2, "layers": 3}])
def test_any_fitting_bert_is_near_float32(precision, near, sizes):
    bert, ids = make_bert(**sizes), make_ids(LENGTHS)
    found, expected = embed(bert, precision, ids, LENGTHS), by_transformers(bert, ids, LENGTHS)
    assert 0 < farthest(found, expected) < near


@needs_kernels
@pytest.mark.parametrize("precision", [None, "int8"])
def test_a_text_has_its_numbers_whatever_is_beside_it(precision, monkeypatch):
    bert, ids = make_bert(), make_ids(LENGTHS)
    layers = core_unpadded.UnpaddedBert(bert, precision)._integers
    whole = core_integers.embed_tokens(layers, ids.numpy(), LENGTHS, 1)
    alone = [core_integers.embed_tokens(layers, one.numpy(), [len(one)], 1) for one in ids.split(LENGTHS)]
    np.testing.assert_array_equal(whole, np.concatenate(alone))
    monkeypatch.setattr(core_integers, "_TOKENS", 20)
    for n_threads in (1, 2, 5, 50):
        np.testing.assert_array_equal(core_integers.embed_tokens(layers, ids.numpy(), LENGTHS, n_threads), whole)


def multiply(rows, weight, bias, bits):
    """Multiply rows by a weight, (t, k) and (n, k), as a layer does."""
    compiled = core_integer_kernels.compiled() and sys.modules["_text_metric_kernels"]
    linear = core_integers.round_linear([weight], [bias], bits)
    limits = tuple(map(np.float32, core_integers._LIMITS[bits]))
    # Of the rows behind the last, only what is there is written back.
    room = (len(rows) + core_integer_kernels.MARGIN, rows.shape[1])
    steps = core_integers._aligned(room, np.int16 if bits == 16 else np.uint8)
    blocks = rows.shape[1] // 16 // core_integer_kernels.depth_of(rows.shape[1])
    sizes = core_integers._aligned((len(rows), blocks * (16 if bits == 16 else 1)), np.float32)
    out = core_integers._aligned((len(rows), len(weight)), np.float32)
    for row in range(len(rows)):
        compiled._round_row(rows[row], linear.factors[0], steps[row], sizes[row], limits)
    assert not steps[len(rows) :].any()
    compiled._multiply(steps, sizes, len(rows), linear.steps[0], linear.columns[0], 0, out)
    return out


@needs_kernels
@pytest.mark.parametrize(("bits", "near"), [(16, 2e-4), (8, 0.03)])
@pytest.mark.parametrize("k", [64, 192, 256, 704, 1536])
@pytest.mark.parametrize("kind", ["normal", "flat", "one", "far"])
def test_products_are_right_where_sums_are_as_large_as_can_be(bits, near, k, kind):
    rng = np.random.default_rng(0)
    rows = {
        "normal": rng.normal(size=(12, k)),
        "flat": np.sign(rng.normal(size=(12, k))),
        "one": np.eye(12, k),
        "far": rng.normal(size=(12, k)) * np.exp(2 * rng.normal(size=k)) * 1e4,
    }[kind].astype(np.float32)
    # Columns that are the rows themselves, or their opposite, and others.
    weight = np.concatenate([rows, -rows, rng.normal(size=(40, k))]).astype(np.float32)
    bias = rng.normal(size=64).astype(np.float32)
    expected = rows.astype(np.float64) @ weight.T.astype(np.float64) + bias
    # By what is rounded: rows and weight, made more even.
    factors = core_integers._factors(weight).astype(np.float64)
    sizes = np.outer(np.linalg.norm(rows * factors, axis=1), np.linalg.norm(weight / factors, axis=1))
    wrong = np.abs(multiply(rows, weight, bias, bits) - expected)
    assert (wrong / sizes).max() < near
    # And by what is given, unless rows are large where weights are, of which factors assume the opposite.
    if kind != "far":
        given = np.outer(np.linalg.norm(rows, axis=1), np.linalg.norm(weight, axis=1))
        assert (wrong / given).max() < near


def test_factors_make_the_columns_of_a_weight_more_even():
    rng = np.random.default_rng(0)
    weight = rng.normal(size=(40, 64)) * np.exp(rng.normal(size=64))
    factors = core_integers._factors(weight)

    def unevenness(matrix):
        norms = np.linalg.norm(matrix, axis=0)
        return norms.std() / norms.mean()

    assert unevenness(weight / factors) < unevenness(weight) / 2
    # A column of zeros is left to itself.
    weight[:, 3] = 0
    assert (core_integers._factors(weight) > 0).all()
    np.testing.assert_array_equal(core_integers._factors(np.zeros((4, 64))) > 0, True)
    assert np.isfinite(core_integers._factors(np.zeros((4, 64)))).all()


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 10_000), st.sampled_from([64, 192, 384, 704, 1536]), st.sampled_from([0, 1, 5]))
def test_no_sum_of_a_chunk_can_exceed_32_bits(seed, k, power):
    rng = np.random.default_rng(seed)
    weight = rng.normal(size=(3, k)) * np.exp(power * rng.normal(size=(3, k)))
    steps, sizes = core_integers._round_weight(weight, 16)
    assert steps.dtype == np.int16
    depth = core_integer_kernels.depth_of(k)
    norms = np.linalg.norm(steps.reshape(3, -1, depth, 16).astype(np.float64), axis=2)
    # A text's rows, too, are rounded after they were held to their limit.
    assert norms.max() * (core_integers._LIMITS[16][1] + math.sqrt(depth) / 2) < 2**31
    np.testing.assert_allclose(steps * sizes[:, None].astype(np.float64), weight, atol=0.51 * sizes.max())


@pytest.mark.parametrize(("k", "depth"), [(64, 4), (128, 8), (384, 24), (704, 4), (768, 24), (1024, 16), (1536, 24)])
def test_a_row_is_whole_blocks(k, depth):
    assert core_integer_kernels.depth_of(k) == depth


def test_gelu_is_that_of_torch():
    row = np.linspace(-9, 9, 4001).astype(np.float32)
    expected = torch.nn.functional.gelu(torch.from_numpy(row).double()).numpy()
    core_integer_kernels._gelu(row)
    np.testing.assert_allclose(row, expected, atol=4e-6)


@needs_kernels
def test_what_has_no_embedding_is_refused():
    layers = core_unpadded.UnpaddedBert(make_bert())._integers
    for ids in ([3, 90], [-1, 5]):
        with pytest.raises(IndexError, match=r"ids must be from 0 to 89\. Got -?\d+ to \d+\."):
            core_integers.embed_tokens(layers, np.array(ids, np.int32), [2], 1)
    with pytest.raises(IndexError, match=r"lengths must be at most 64\. Got 65\."):
        core_integers.embed_tokens(layers, np.zeros(65, np.int32), [65], 1)
    assert core_integers.embed_tokens(layers, np.zeros(0, np.int32), [], 2).shape == (0, 64)


@pytest.mark.parametrize("sizes", [{"size": 96}, {"wide": 100}, {"heads": 8}])
def test_what_does_not_fit_runs_in_torch(sizes):
    bert, ids = make_bert(**sizes), make_ids(LENGTHS)
    body = core_unpadded.UnpaddedBert(bert)
    assert body._integers is None
    np.testing.assert_allclose(body.tokens(ids, LENGTHS).numpy(), by_transformers(bert, ids, LENGTHS), atol=1e-4)


@pytest.fixture
def untried():
    """Let what was found out about the kernels be found out again."""
    caches = core_integers.has_kernels, core_integer_kernels.compiled
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


@pytest.mark.usefixtures("untried")
def test_without_numba_torch_does_the_work(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.setattr(core_integers.importlib.util, "find_spec", lambda name: None)
    bert, ids = make_bert(), make_ids(LENGTHS)
    for precision in BITS:
        assert core_unpadded.UnpaddedBert(bert, precision)._integers is None
    found = core_unpadded.UnpaddedBert(bert).tokens(ids, LENGTHS).numpy()
    np.testing.assert_allclose(found, by_transformers(bert, ids, LENGTHS), atol=1e-4)


@needs_kernels
@pytest.mark.usefixtures("untried")
def test_what_cannot_be_compiled_is_said(monkeypatch, caplog):
    def fail():
        raise NotImplementedError("no such instruction")

    monkeypatch.setattr(core_integers, "compiled", fail)
    assert core_unpadded.UnpaddedBert(make_bert())._integers is None
    assert "could not be compiled; torch does the work" in caplog.text
    assert "no such instruction" in caplog.text


@needs_kernels
def test_what_does_not_agree_is_not_taken(monkeypatch, default_encoder):
    real = core_unpadded.embed_tokens
    monkeypatch.setattr(core_unpadded, "embed_tokens", lambda *parts, **settings: real(*parts, **settings) ** 3)
    fast = core_unpadded.unpadded_encoder(default_encoder, None)
    assert fast._body._integers is None
    assert core_unpadded.unpadded_encoder(default_encoder, "int8") is None


@pytest.fixture(scope="module")
def default_encoder():
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(core_encoder.find_model("all-MiniLM-L6-v2").path), device="cpu")


@needs_kernels
@pytest.mark.parametrize("precision", BITS)
def test_torch_serves_small_inputs_until_kernels_are_compiled(precision, monkeypatch):
    bert, ids = make_bert(), make_ids(LENGTHS)
    by_kernels = embed(bert, precision, ids, LENGTHS)
    monkeypatch.setattr(core_unpadded, "are_compiled", lambda bits: False)
    body = core_unpadded.UnpaddedBert(bert, precision)
    body.prepare(core_unpadded._WORTH_COMPILING - 1)
    by_torch = body.tokens(ids, LENGTHS).numpy()
    assert body.tokens_at_once == core_unpadded.TOKENS
    if precision is None:
        exact = core_unpadded.UnpaddedBert(bert, "float32").tokens(ids, LENGTHS).numpy()
        np.testing.assert_array_equal(by_torch, exact)
    body.prepare(core_unpadded._WORTH_COMPILING)
    np.testing.assert_array_equal(body.tokens(ids, LENGTHS).numpy(), by_kernels)
    assert body.tokens_at_once > core_unpadded.TOKENS
    assert 0 < farthest(by_kernels, by_torch) < (1e-3 if precision is None else 0.1)


@needs_kernels
def test_a_large_input_is_worth_compiling(monkeypatch, default_encoder):
    monkeypatch.setattr(core_unpadded, "are_compiled", lambda bits: False)
    monkeypatch.setattr(core_unpadded, "_WORTH_COMPILING", 30)
    fast = core_unpadded.unpadded_encoder(default_encoder, None)
    loaded = core_encoder.LoadedModel(default_encoder, "float32", threading.Lock(), fast)
    texts = [text for members in SETS for text in members]
    bar = tqdm(disable=True)
    few, _ = core_encoder._encode_unique(loaded, texts[:2], None, bar)
    assert fast._body._integers is None
    many, _ = core_encoder._encode_unique(loaded, texts, None, bar)
    assert fast._body._integers is not None
    # All of an input goes one way.
    again, _ = core_encoder._encode_unique(loaded, texts[:2], None, bar)
    np.testing.assert_array_equal(again, many[:2])
    assert 0 < np.abs(few - again).max() < 1e-4


@needs_kernels
def test_kernels_that_do_not_agree_leave_the_work_to_torch(monkeypatch):
    monkeypatch.setattr(core_unpadded, "are_compiled", lambda bits: False)
    bert, ids = make_bert(), make_ids(LENGTHS)
    body = core_unpadded.UnpaddedBert(bert)
    expected = body.tokens(ids, LENGTHS).numpy()
    real = core_unpadded.embed_tokens
    monkeypatch.setattr(core_unpadded, "embed_tokens", lambda *parts, **settings: real(*parts, **settings) ** 3)
    body.prepare(10**6)
    np.testing.assert_array_equal(body.tokens(ids, LENGTHS).numpy(), expected)


@needs_kernels
@pytest.mark.parametrize("precision", BITS)
def test_means_are_those_of_the_tokens(precision):
    bert, ids = make_bert(), make_ids(LENGTHS)
    body = core_unpadded.UnpaddedBert(bert, precision)
    expected = torch.stack([rows.mean(0) for rows in body.tokens(ids, LENGTHS).split(LENGTHS)])
    np.testing.assert_allclose(body.means(ids, LENGTHS).numpy(), expected.numpy(), atol=1e-6)


@needs_kernels
@pytest.mark.parametrize("metric", ["vendi_embed", "chamfer_diversity"])
def test_the_default_is_as_good_as_float32(load, metric):
    exact = load(metric).compute(predictions=SETS, precision="float32", device="cpu")
    default = load(metric).compute(predictions=SETS, device="cpu")
    assert default["scores"] == pytest.approx(exact["scores"], abs=1e-4)
    assert default[metric] != exact[metric]
    # So it is not in the signature.
    assert default["signature"] == exact["signature"]
    texts = [text for members in SETS for text in members]
    found, expected = (
        core_encoder.encode(texts, precision=name, device="cpu").embeddings for name in (None, "float32")
    )
    assert (found * expected).sum(1, dtype=np.float64).min() > 1 - 3e-7


@needs_kernels
@pytest.mark.slow
@pytest.mark.parametrize(("metric", "q"), [("vendi_embed", 0.5), ("vendi_embed", 1), ("chamfer_diversity", None)])
def test_no_score_of_a_real_set_moves_by_1e_4(load, shared_data, metric, q):
    sets = []
    for file in sorted((shared_data / "data/diversity_pairs").glob("*.jsonl")):
        lines = file.read_text(encoding="utf-8").splitlines()[:50]
        sets += [value for line in lines for value in json.loads(line).values() if isinstance(value, list)]
    assert len(sets) > 300
    assert {len(members) for members in sets} == {4}
    settings = {"device": "cpu"} if q is None else {"device": "cpu", "q": q}
    exact = load(metric).compute(predictions=sets, precision="float32", **settings)
    default = load(metric).compute(predictions=sets, **settings)
    assert default["scores"] == pytest.approx(exact["scores"], abs=1e-4)
    assert default[metric] == pytest.approx(exact[metric], abs=1e-5)


PROGRAM = """
import json, sys
import numpy as np
sys.path.insert(0, sys.argv[1])
import core_integers
known = core_integers.are_compiled(16)
zeros = np.zeros((4, 64), np.float32)
project, other = (
    core_integers.round_linear([np.ones((n, 64), np.float32)], [np.ones(n, np.float32)], 16) for n in (192, 64)
)
layers = core_integers.Layers(zeros, zeros, zeros[:2] + 1, zeros[None] + 1, project, *[other] * 3, 1, 1e-6, 16)
found = core_integers.embed_tokens(layers, np.arange(4, dtype=np.int32), [4], 1)
hits = sum(core_integers.compiled().stats.cache_hits.values())
print(json.dumps([float(found.sum()), hits, known, core_integers.has_kernels(16) and core_integers.are_compiled(16)]))
"""


@needs_kernels
@pytest.mark.slow
def test_copies_share_what_was_compiled(tmp_path):
    def run(folder, cache):
        for name in ("core_integers", "core_integer_kernels", "core_integer_tiles"):
            text = Path(core_integers.__file__).with_name(f"{name}.py").read_text(encoding="utf-8")
            (tmp_path / folder).mkdir(exist_ok=True)
            (tmp_path / folder / f"{name}.py").write_text(text.replace("from .core_", "from core_"), encoding="utf-8")
        environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, folder], cwd=tmp_path, env=environment, capture_output=True, check=True
        )
        return json.loads(done.stdout)

    first, second = (run(folder, tmp_path / "cache") for folder in ("one", "another"))
    assert (first, second) == ([second[0], 0, False, True], [first[0], 1, True, True])
    # Where nothing can be kept, it is compiled each time.
    (tmp_path / "file").write_text("")
    assert run("one", tmp_path / "file") == first
    assert run("one", tmp_path / "file")[2] is False
    assert math.isfinite(first[0])


DIGITS = """
import hashlib, json, sys
from metrics._core import core_encoder, core_integers
texts = json.loads(sys.argv[1])
for bits, precision in ((16, None), (8, "int8")):
    assert core_integers.has_kernels(bits)
    rows = core_encoder.encode(texts, precision=precision, device="cpu").embeddings
    print(hashlib.sha256(rows.tobytes()).hexdigest())
"""


@needs_kernels
@pytest.mark.slow
def test_every_digit_is_the_same_whatever_processor_the_kernels_are_compiled_for(tmp_path):
    texts = [text for members in SETS for text in members]

    def run(processor):
        environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / str(processor))}
        # What it can do is that of the one at hand; how code is made for it is not.
        environment |= {"NUMBA_CPU_NAME": processor} if processor else {}
        done = subprocess.run(
            [sys.executable, "-c", DIGITS, json.dumps(texts)],
            cwd=Path(__file__).parents[1],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.split()

    own = run(None)
    assert len(set(own)) == 2
    # Vectors of half the size are the first choice for these.
    assert run("cascadelake") == run("sapphirerapids") == own
