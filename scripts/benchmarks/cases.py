"""The cases: what is scored, at which sizes, and the peer that computes the same numbers.

A case is a class with `ours` and, if there is a peer, `theirs`. asv runs `time_` and `peakmem_` of each side at each
size in a process of its own. That both sides agree is a test of every commit, in tests/test_peers.py.
"""

import os
import shutil
import tempfile
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np

from . import inputs


class Case:
    """What asv measures of both sides. `peer` is the name of the other side, `claim` the ratio that README states."""

    title, peer = "", ""
    claim: float | None = None
    param_names = ("side", "n")
    params: tuple[list[str], list[int]]
    number, repeat, warmup_time, timeout = 1, (1, 3, 20.0), 0.0, 600.0

    def setup(self, side: str, n: int) -> None:
        """Make the input and load the models, by scoring a small input first."""
        self.prepare()
        self._score = self.ours if side == "ours" else self.theirs
        self._score(self.make(4))
        self._input = self.make(n)

    def teardown(self, side: str, n: int) -> None:
        """Remove what was written."""

    def prepare(self) -> None:
        """Import and load what is needed."""

    def make(self, n: int) -> Any:
        """Make an input of size n."""
        raise NotImplementedError

    def ours(self, given: Any) -> Any:
        """Score with this package."""
        raise NotImplementedError

    def theirs(self, given: Any) -> Any:
        """Score with the peer."""
        raise NotImplementedError

    def time_score(self, side: str, n: int) -> None:
        """Measure the time."""
        self._score(self._input)

    def peakmem_score(self, side: str, n: int) -> None:
        """Measure the peak memory of the process."""
        self._score(self._input)


def _metric(name: str) -> Any:
    from text_metrics import load

    return load(name)


def _sides(*sizes: int) -> tuple[list[str], list[int]]:
    return ["ours", "theirs"], list(sizes)


def _alone(*sizes: int) -> tuple[list[str], list[int]]:
    return ["ours"], list(sizes)


class SelfBleu(Case):
    title, peer, claim = "Self-BLEU-3 of one set of n captions", "fast-bleu SelfBLEU", 30
    params = _sides(2_000, 20_000)

    def prepare(self) -> None:
        self._metric = _metric("self_bleu")

    def make(self, n: int) -> Any:
        return inputs.captions(n)

    def ours(self, given: Any) -> Any:
        return self._metric.compute(predictions=given, aggregate="sentence", max_order=3)["self_bleu"]

    def theirs(self, given: Any) -> Any:
        from fast_bleu import SelfBLEU

        tokens = [text.split() for text in given]
        return np.mean(SelfBLEU(tokens, {3: (1 / 3, 1 / 3, 1 / 3)}, smoothing_func=1).get_score()[3])


class VendiSets(Case):
    title, peer = "Vendi scores of n sets of 4 × 384", "vendi-score score_X, in a loop"
    claim: float | None = 20
    params = _sides(2_000, 20_000)

    def prepare(self) -> None:
        self._metric = _metric("vendi_embed")

    def make(self, n: int) -> Any:
        return inputs.sets_of_four(n)

    def ours(self, given: Any) -> Any:
        return self._metric.compute(**given)["scores"]

    def theirs(self, given: Any) -> Any:
        from vendi_score.vendi import score_X

        return [score_X(rows) for rows in given["embeddings"].reshape(-1, 4, inputs.DIMENSIONS)]


class VendiSet(VendiSets):
    title, peer, claim = "Vendi score of one set of n × 384, float64", "vendi-score score_dual", 1
    params = _sides(2_000, 20_000)

    def make(self, n: int) -> Any:
        return inputs.one_set(n)

    def theirs(self, given: Any) -> Any:
        from vendi_score.vendi import score_dual

        return [score_dual(given["embeddings"])]


class Contributions(VendiSets):
    title, peer, claim = "Contribution of each text, n sets of 4 × 384", "`compute` without each text, in a loop", 100
    params = _sides(2_000, 20_000)

    def ours(self, given: Any) -> Any:
        from text_metrics import contributions

        return contributions(self._metric, **given)

    def theirs(self, given: Any) -> Any:
        rows = given["embeddings"].reshape(-1, 4, inputs.DIMENSIONS)
        return [
            [self._score_of(texts, part, range(4)) - self._score_of(texts, part, set(range(4)) - {i}) for i in range(4)]
            for texts, part in zip(given["predictions"], rows, strict=True)
        ]

    def _score_of(self, texts: list[str], rows: np.ndarray, kept: Any) -> float:
        places = list(kept)
        return self._metric.compute(predictions=[texts[i] for i in places], embeddings=rows[places])["vendi_embed"]


class Chamfer(Case):
    title, peer, claim = "Chamfer diversity of one set of n × 384", "scikit-learn, full matrix", 5
    params = _sides(5_000, 20_000)

    def prepare(self) -> None:
        self._metric = _metric("chamfer_diversity")

    def make(self, n: int) -> Any:
        return inputs.one_set(n, np.float32)

    def ours(self, given: Any) -> Any:
        return self._metric.compute(**given)["scores"]

    def theirs(self, given: Any) -> Any:
        from sklearn.metrics.pairwise import cosine_distances

        distances = cosine_distances(given["embeddings"])
        np.fill_diagonal(distances, np.inf)
        return [distances.min(axis=1).mean()]


class Meanings(VendiSets):
    title, peer = "Number of meanings of n sets of 4 × 384", ""
    claim: float | None = None
    params = _alone(2_000, 20_000)

    def prepare(self) -> None:
        self._metric = _metric("semantic_entropy")

    def ours(self, given: Any) -> Any:
        return self._metric.compute(**given, same=0.83)["n_classes_scores"]


class Encode(Case):
    title, peer = "Embeddings of n different captions", "SentenceTransformer.encode"
    claim: float | None = 1
    params = _sides(400, 4_000)

    def prepare(self) -> None:
        from sentence_transformers import SentenceTransformer

        from text_metrics.metrics._core import core_encoder, core_models

        self._core, self._settings = core_encoder, core_encoder.EncoderSettings()
        self._peer = SentenceTransformer(str(core_models.find_model(core_models.DEFAULT_MODEL).path))

    def make(self, n: int) -> Any:
        return inputs.different_captions(n)

    def ours(self, given: Any) -> Any:
        return self._core.encode(given, self._settings)[0]

    def theirs(self, given: Any) -> Any:
        return self._peer.encode(given)


class EncodeCached(Encode):
    title = "Embeddings of n different captions, a second time, with `cache_dir`"
    claim = None
    params = _sides(400, 4_000)

    def setup(self, side: str, n: int) -> None:
        """Fill the cache."""
        self._folder = tempfile.mkdtemp()
        super().setup(side, n)
        self._score(self._input)

    def teardown(self, side: str, n: int) -> None:
        """Remove the cache."""
        shutil.rmtree(self._folder)

    def prepare(self) -> None:
        super().prepare()
        self._settings = self._core.EncoderSettings(cache_dir=self._folder)


class ProbevalQuestions(Case):
    title = "ProbEval of n questions with 100 answers, word vectors given"
    params = _alone(100, 1_000)

    def prepare(self) -> None:
        self._metric = _metric("probeval")

    def make(self, n: int) -> Any:
        return inputs.asked_questions(n)

    def ours(self, given: Any) -> Any:
        return self._metric.compute(**given)["scores"]


class Gruen(Case):
    title, peer, claim = "GRUEN of n texts of five sentences", "`compute` of each text, sentences one by one", 4
    params = _sides(50, 200)

    def prepare(self) -> None:
        self._metric = _metric("gruen")

    def make(self, n: int) -> Any:
        return inputs.five_sentences(n)

    def ours(self, given: Any) -> Any:
        return self._metric.compute(predictions=given)["scores"]

    def theirs(self, given: Any) -> Any:
        return [self._metric.compute(predictions=[text], batch_size=1)["scores"][0] for text in given]


class ScoreFile(Case):
    title, peer, claim = "Self-BLEU of a file of n captions, four a set", "pandas, one `compute` a set", 5
    params = _sides(4_000, 20_000)

    def prepare(self) -> None:
        self._metric = _metric("self_bleu")

    def make(self, n: int) -> Any:
        return inputs.file_of_sets(inputs.captions(n))

    def ours(self, given: Path) -> Any:
        from text_metrics.commands.score import main as score

        words = [str(given), "--metric", "self_bleu", "--text-key", "generations", "--restart", "--quiet"]
        with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
            return score.main([*words, "--out", str(given.with_name("scores.jsonl"))])

    def theirs(self, given: Path) -> Any:
        import pandas

        frame = pandas.read_json(given, lines=True)
        scores = [self._metric.compute(predictions=[texts])["self_bleu"] for texts in frame.generations]
        frame.assign(self_bleu=scores).to_json(given.with_name("scores.jsonl"), orient="records", lines=True)


class Report(Case):
    title, peer, claim = "A report of two systems, n prompts of four captions", "their embeddings alone", None
    params = _sides(100, 500)

    def prepare(self) -> None:
        from text_metrics.metrics._core import core_encoder

        self._core = core_encoder

    def make(self, n: int) -> Any:
        texts = inputs.captions(8 * n)
        return texts, [inputs.file_of_sets(texts[: 4 * n]), inputs.file_of_sets(texts[4 * n :])]

    def ours(self, given: Any) -> Any:
        from text_metrics.commands.report.main import main as report

        words = [f"{name}={path}" for name, path in zip("AB", given[1], strict=True)]
        words += ["--text-key", "generations", "--by-line", "--quality", "none", "--out", tempfile.mkdtemp()]
        with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
            return report(words)

    def theirs(self, given: Any) -> Any:
        return self._core.encode(given[0], self._core.EncoderSettings())


# Their base is no case.
del Case
