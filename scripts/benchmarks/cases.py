"""The cases: what is scored, at which sizes, and the peer that computes the same numbers.

A case is a class that makes an input and scores it by `ours` and, if there is a peer, by `theirs`. asv runs `time_` and
`peakmem_` of each side at each size in a process of its own. That both sides agree is a test of every commit, in
tests/test_peers.py.
"""

import io
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from text_metrics import contributions, load

from . import inputs

SIDES = ["ours", "theirs"]
# Rows of the products by which Chamfer compares all pairs.
_TILE_ROWS = 512
_METRICS = Path(__file__).resolve().parents[2] / "metrics"


class Case:
    """A case that asv measures on both sides.

    peer : name of the other side
    claim : the ratio that README states
    metric : the metric that is loaded, if any
    make : returns an input of size n
    """

    title, peer, metric = "", "", ""
    claim: float | None = None
    make: Callable[[int], Any]
    param_names = ("side", "n")
    params = SIDES, [2_000, 20_000]
    number = 1
    rounds = 1
    repeat = (1, 3, 10.0)
    warmup_time = 0.0
    timeout = 600.0

    def setup(self, side: str, n: int) -> None:
        """Make the input and load the models, by scoring a small input first."""
        self.prepare()
        self._score = self.ours if side == "ours" else self.theirs
        self._score(self.make(4))
        self._input = self.make(n)

    def prepare(self) -> None:
        """Import and load what is needed."""
        if self.metric:
            self._metric = load(self.metric)

    def ours(self, given: Any) -> Any:
        """Score with this package."""
        return self._metric.compute(**given)["scores"]

    def theirs(self, given: Any) -> Any:
        """Score with the peer."""
        raise NotImplementedError(f"{type(self).__name__} has no peer.")

    def time_score(self, side: str, n: int) -> None:
        """Measure the time."""
        self._score(self._input)

    def peakmem_score(self, side: str, n: int) -> None:
        """Measure the peak memory of the process."""
        self._score(self._input)


class SelfBleu(Case):
    title, peer, claim = "Self-BLEU-3 of one set of n captions", "fast-bleu SelfBLEU", 30
    metric = "self_bleu"
    make = staticmethod(inputs.captions)

    def ours(self, given: Any) -> Any:
        return self._metric.compute(predictions=given, aggregate="sentence", max_order=3)["self_bleu"]

    def theirs(self, given: Any) -> Any:
        from fast_bleu import SelfBLEU

        tokens = [text.split() for text in given]
        return np.mean(SelfBLEU(tokens, {3: (1 / 3, 1 / 3, 1 / 3)}, smoothing_func=1).get_score()[3])


class VendiSets(Case):
    title, peer = "Vendi scores of n sets of 4 × 384", "vendi-score score_X, in a loop"
    claim: float | None = 20
    metric = "vendi_embed"
    make = staticmethod(inputs.sets_of_four)

    def theirs(self, given: Any) -> Any:
        from vendi_score.vendi import score_X

        return [score_X(rows) for rows in given["embeddings"].reshape(-1, 4, inputs.DIMENSIONS)]


class VendiSet(VendiSets):
    title, peer, claim = "Vendi score of one set of n × 384, float64", "vendi-score score_dual", None
    make = staticmethod(inputs.one_set)

    def theirs(self, given: Any) -> Any:
        from vendi_score.vendi import score_dual

        return [score_dual(given["embeddings"])]


class VendiContexts(VendiSets):
    title, peer, claim = "Vendi scores of n sets of 4 × 384, with contexts", "the same without contexts", None

    def make(self, n: int) -> Any:
        contexts = np.random.default_rng(1).standard_normal((n, inputs.DIMENSIONS), dtype=np.float32)
        return inputs.sets_of_four(n) | {"context_embeddings": contexts}

    def theirs(self, given: Any) -> Any:
        return self.ours({name: given[name] for name in ("predictions", "embeddings")})


class Contributions(VendiSets):
    title, peer, claim = "Contribution of each text, n sets of 4 × 384", "`compute` without each text, in a loop", 100

    def ours(self, given: Any) -> Any:
        return contributions(self._metric, **given)

    def theirs(self, given: Any) -> Any:
        sets = given["predictions"]
        if isinstance(sets[0], str):
            sets = [sets]
        losses = []
        for texts, rows in zip(sets, given["embeddings"].reshape(len(sets), -1, inputs.DIMENSIONS), strict=True):
            whole = self._metric.compute(predictions=texts, embeddings=rows)["vendi_embed"]
            for i in range(len(texts)):
                rest = self._metric.compute(predictions=texts[:i] + texts[i + 1 :], embeddings=np.delete(rows, i, 0))
                losses.append(whole - rest["vendi_embed"])
        return losses


class ContributionsOfSet(Contributions):
    title, claim = "Contribution of each text of one set of n × 384", 50
    params = SIDES, [150, 600]
    make = staticmethod(inputs.one_set)


class Chamfer(Case):
    title, peer = "Chamfer diversity of one set of n × 384", "scikit-learn, full matrix"
    claim: float | None = None
    params = SIDES, [5_000, 20_000]
    metric = "chamfer_diversity"

    def make(self, n: int) -> Any:
        return inputs.one_set(n, np.float32)

    def theirs(self, given: Any) -> Any:
        from sklearn.metrics.pairwise import cosine_distances

        distances = cosine_distances(given["embeddings"])
        np.fill_diagonal(distances, np.inf)
        return [distances.min(axis=1).mean()]


class ChamferProducts(Chamfer):
    title, peer, claim = "Chamfer diversity of one set of n × 384", "its products alone, by torch.mm", 0.7

    def theirs(self, given: Any) -> Any:
        n_tiles = -(-len(given["predictions"]) // _TILE_ROWS)
        for _ in range(n_tiles * (n_tiles + 1) // 2):
            _multiply(_TILE_ROWS, inputs.DIMENSIONS, _TILE_ROWS)


def _multiply(n_rows: int, n_inner: int, n_columns: int) -> None:
    """Multiply two float32 matrices."""
    import torch

    torch.mm(_ones(n_rows, n_inner), _ones(n_columns, n_inner).T)


@cache
def _ones(n_rows: int, n_columns: int) -> Any:
    import torch

    return torch.ones((n_rows, n_columns))


class Meanings(Case):
    title = "Number of meanings of n sets of 4 × 384"
    params = SIDES[:1], [2_000, 20_000]
    metric = "semantic_entropy"

    def make(self, n: int) -> Any:
        return inputs.sets_of_four(n) | {"same": 0.83}


class Encode(Case):
    title, peer = "Embeddings of n different captions", "SentenceTransformer.encode"
    claim: float | None = 1
    params = SIDES, [400, 4_000]
    make = staticmethod(inputs.different_captions)

    def prepare(self) -> None:
        from sentence_transformers import SentenceTransformer

        from text_metrics.metrics._core import core_encoder, core_models

        self._core = core_encoder
        self._settings = core_encoder.EncoderSettings()
        self._peer = SentenceTransformer(str(core_models.find_model(core_models.DEFAULT_MODEL).path))

    def ours(self, given: Any) -> Any:
        return self._core.encode(given, self._settings)[0]

    def theirs(self, given: Any) -> Any:
        return self._peer.encode(given)


class EncodeCached(Encode):
    title = "Embeddings of n different captions, a second time, with `cache_dir`"
    claim: float | None = None

    def prepare(self) -> None:
        super().prepare()
        self._settings = self._core.EncoderSettings(cache_dir=str(inputs.temporary_folder()))

    def setup(self, side: str, n: int) -> None:
        """Fill the cache."""
        super().setup(side, n)
        self._score(self._input)


class ProbevalQuestions(Case):
    title = "ProbEval of n questions with 100 answers, word vectors given"
    params = SIDES[:1], [100, 1_000]
    metric = "probeval"
    make = staticmethod(inputs.asked_questions)


class Gruen(Case):
    title, peer = "GRUEN of n texts of five sentences", "`compute` of each text, sentences one by one"
    params = SIDES, [50, 200]
    metric = "gruen"
    make = staticmethod(inputs.five_sentences)

    def theirs(self, given: Any) -> Any:
        return [self._metric.compute(predictions=[text], batch_size=1)["scores"][0] for text in given["predictions"]]


class GruenEncoder(Case):
    title, peer, claim = "GRUEN's encoder over n sentences", "its products alone, by torch.mm", 0.8
    params = SIDES, [250, 1_000]

    def prepare(self) -> None:
        from text_metrics.metrics._core import core_minilm, core_models, core_windows

        self._core = core_minilm
        self._encoder = core_minilm.load_minilm(core_models.find_model(core_models.DEFAULT_MODEL), "cpu")
        self._batches = core_windows.token_batches

    def make(self, n: int) -> Any:
        """Make batches of sentences: tokens, and their mask."""
        texts = inputs.five_sentences(-(-n // 5))["predictions"]
        sentences = [f"{part.strip(' .')}." for text in texts for part in text.split(". ")][:n]
        tokens = [encoding.ids for encoding in self._encoder.tokenizer.encode_batch(sentences)]
        batches = []
        for batch in self._batches(np.array([len(ids) for ids in tokens]), "cpu"):
            batches.append(self._core.pad_tokens([tokens[i] for i in batch], "cpu"))
        return batches

    def ours(self, given: Any) -> Any:
        import torch

        with torch.inference_mode():
            for ids, mask in given:
                self._core.hidden_states(self._encoder.network, ids, mask)

    def theirs(self, given: Any) -> Any:
        shapes = [part.shape for part in self._encoder.network["encoder"].parameters() if part.ndim == 2]
        for ids, _ in given:
            for n_out, n_in in shapes:
                _multiply(ids.numel(), n_in, n_out)


class ChosenScore(Case):
    title = "Score of n × 384 texts chosen of one group, in the summary of `choose`"
    params = SIDES[:1], [20_000, 40_000]

    def make(self, n: int) -> Any:
        from text_metrics.metrics._core.core_numbers import unit_vectors

        return unit_vectors(inputs.one_set(n)["embeddings"]), np.random.default_rng(1).random(n)

    def ours(self, given: Any) -> Any:
        from text_metrics.choosing.greedy import subset_score

        return subset_score(*given)


class Choose(Case):
    title, peer, claim = "A tenth of n × 384 chosen, as by `choose`", "all gains at each step, in numpy", 2

    def make(self, n: int) -> Any:
        return inputs.one_set(n)["embeddings"], np.random.default_rng(1).random(n), -(-n // 10)

    def ours(self, given: Any) -> Any:
        from text_metrics.choosing.greedy import choose_greedily

        embeddings, quality, wanted = given
        n = len(quality)
        return choose_greedily(embeddings, quality, np.array([n]), np.array([wanted]), np.arange(n))[0].tolist()

    def theirs(self, given: Any) -> Any:
        embeddings, quality, wanted = given
        vectors = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
        crossed = np.zeros(len(vectors))
        squares = 0.0
        total = 0.0
        chosen: list[int] = []
        for step in range(wanted):
            scores = (total + quality) * (step + 1) / (squares + 2 * crossed + 1)
            scores[chosen] = -np.inf
            best = int(scores.argmax())
            squares += 2 * crossed[best] + 1
            total += quality[best]
            crossed += np.square(vectors @ vectors[best])
            chosen.append(best)
        return chosen


class ChooseGroups(Case):
    title = "4 of 8 × 384 chosen of each of n / 8 groups, as by `choose`"
    params = SIDES[:1], [4_000, 40_000]

    def make(self, n: int) -> Any:
        sizes = np.full(-(-n // 8), 8)
        n_texts = int(sizes.sum())
        quality = np.random.default_rng(1).random(n_texts)
        return inputs.one_set(n_texts)["embeddings"], quality, sizes, np.full(len(sizes), 4), np.arange(n_texts)

    def ours(self, given: Any) -> Any:
        from text_metrics.choosing.greedy import choose_greedily

        return choose_greedily(*given)


class Load(Case):
    title, peer, claim = "`text_metrics.load` of self_bleu in a new process", "evaluate.load", 2
    params = SIDES, [1]
    # It would be the memory of this process.
    peakmem_score = None  # type: ignore[assignment]

    def setup(self, side: str, n: int) -> None:
        """Do nothing: the first load is measured."""
        self._input = None
        self._score = self.ours if side == "ours" else self.theirs

    def ours(self, given: None) -> Any:
        _run("import text_metrics; text_metrics.load('self_bleu')")

    def theirs(self, given: None) -> Any:
        _run(f"import evaluate; evaluate.load({str(_METRICS / 'self_bleu')!r})")


def _run(program: str) -> None:
    # One thread: others would wait, which counts as CPU time.
    subprocess.run([sys.executable, "-c", program], env=os.environ | {"OMP_NUM_THREADS": "1"}, check=True)


def _children_seconds() -> float:
    """Return the CPU time of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class FirstScore(Case):
    """The first score in a new process: CPU seconds, and the memory of one that does nothing else.

    A ratio of .5 is 3.2 seconds where torch's import takes 1.6.
    """

    peer = "import torch"
    claim: float | None = 0.5
    params = SIDES, [1]
    timer = staticmethod(_children_seconds)
    given: dict[str, Any]

    def setup(self, side: str, n: int) -> None:
        """Write the program."""
        self._program = self.program(n) if side == "ours" else "import torch"

    def program(self, n: int) -> str:
        """Return the program of our side."""
        return f"import text_metrics; text_metrics.load({self.metric!r}).compute(**{self.given!r})"

    def time_score(self, side: str, n: int) -> None:
        """Measure the CPU time of a new process."""
        _run(self._program)

    def peakmem_score(self, side: str, n: int) -> None:
        """Measure the memory of this process, which asv has started for this."""
        exec(self._program)


def _first(name: str, what: str, metric: str, claim: float | None = 0.5, **given: Any) -> type:
    """Return the case of the first score of a metric."""
    title = f"First {what} in a new process, CPU time"
    attributes = {"title": title, "metric": metric, "claim": claim, "given": given}
    return type(name, (FirstScore,), attributes)  # noqa: F821  # deleted at the end only


_TEXTS = ["A dog runs on the beach.", "The cat sleeps on the stove.", "A boat sails across the lake."]
_PEOPLE = ["a pot", "kettle", "spoon"]
FirstVendi = _first("FirstVendi", "Vendi score", "vendi_embed", predictions=_TEXTS)
FirstChamfer = _first("FirstChamfer", "Chamfer diversity", "chamfer_diversity", predictions=_TEXTS)
FirstMeanings = _first("FirstMeanings", "semantic entropy", "semantic_entropy", predictions=[_TEXTS])
FirstGruen = _first("FirstGruen", "GRUEN", "gruen", predictions=["The doctor told me the news. I went home."])
FirstProbeval = _first(
    "FirstProbeval", "ProbEval", "probeval", None, predictions=[["pot", "a kettle"]], references=[_PEOPLE]
)
FirstSelfBleu = _first("FirstSelfBleu", "Self-BLEU", "self_bleu", None, predictions=_TEXTS)


class Demo(FirstScore):
    title = "`text-metrics demo`, CPU time"

    def program(self, n: int) -> str:
        return "from text_metrics.__main__ import main; main(['demo'])"


class ScoreCaptions(FirstScore):
    title = "`text-metrics score` of n captions, four a set, by vendi_embed, CPU time"
    claim: float | None = None
    params = SIDES, [400]

    def program(self, n: int) -> str:
        path = inputs.file_of_sets(inputs.captions(n))
        words = ["score", str(path), "--metric", "vendi_embed", "--text-key", "generations", "--quiet"]
        words += ["--out", str(path.with_name("scores.jsonl")), "--restart"]
        return f"from text_metrics.__main__ import main; main({words!r})"


class ScoreFile(Case):
    title, peer, claim = "Self-BLEU of a file of n captions, four a set", "pandas, one `compute` a set", 5
    params = SIDES, [4_000, 20_000]
    metric = "self_bleu"

    def make(self, n: int) -> Any:
        return inputs.file_of_sets(inputs.captions(n))

    def ours(self, given: Path) -> Any:
        from text_metrics.commands.score import main as score

        words = [str(given), "--metric", "self_bleu", "--text-key", "generations", "--restart", "--quiet"]
        with redirect_stdout(io.StringIO()):
            return score([*words, "--out", str(given.with_name("scores.jsonl"))])

    def theirs(self, given: Path) -> Any:
        import pandas

        frame = pandas.read_json(given, lines=True)
        scores = [self._metric.compute(predictions=[texts])["self_bleu"] for texts in frame.generations]
        frame.assign(self_bleu=scores).to_json(given.with_name("scores.jsonl"), orient="records", lines=True)


class Report(Case):
    title, peer, claim = "A report of two systems, n prompts of four captions", "their embeddings alone", None
    params = SIDES, [100, 500]

    def make(self, n: int) -> Any:
        texts = inputs.captions(8 * n)
        return texts, [inputs.file_of_sets(texts[: 4 * n]), inputs.file_of_sets(texts[4 * n :])]

    def ours(self, given: Any) -> Any:
        from text_metrics.commands.report import main as report

        words = [f"{name}={path}" for name, path in zip("AB", given[1], strict=True)]
        words += ["--text-key", "generations", "--by-line", "--quality", "none"]
        words += ["--out", str(inputs.temporary_folder())]
        with redirect_stdout(io.StringIO()):
            return report(words)

    def theirs(self, given: Any) -> Any:
        from text_metrics.metrics._core.core_encoder import EncoderSettings, encode

        return encode(given[0], EncoderSettings())


# Hide their base classes from asv.
del Case, FirstScore
