"""ProbEval: how far a model's distribution of answers to a commonsense question is from people's."""

from collections.abc import Mapping
from typing import Any

import datasets
import evaluate
import numpy as np

from .core_cache import TextCache as TextCache
from .core_encoder import EncoderSettings, embed_sets
from .core_inputs import TextSets
from .core_metric import TextMetric
from .core_models import DEFAULT_MODEL
from .core_parts import SetParts as SetParts
from .core_results import (
    QUESTIONS,
    confidence_interval,
    confidence_settings,
    format_sizes,
    parse_confidence,
    signature,
)
from .core_trainer import TrainerMetric as TrainerMetric
from .core_vectors import load_vectors
from .probeval_clusters import compare_clusterings
from .probeval_formats import (
    from_cfc,
    from_protoqa,
    labels_from_cfc,
    parse_labels,
    parse_rows,
    questions,
)
from .probeval_matching import WordNetMatcher, cluster_maximum
from .probeval_parts import AnswerParts
from .probeval_pipeline import (
    Settings,
    cluster,
    describe_question,
    match,
    needs_embeddings,
    needs_wordnet,
    resolve,
    score,
)
from .probeval_protoqa import protoqa_matches, rank, ranked_scores
from .probeval_scores import mean
from .probeval_vectors import Embeddings, average_word_vectors
from .probeval_wordnet import load_wordnet

_DESCRIPTION = """\
How far is the distribution of a model's answers to a commonsense question from that of people's? People's answers are
put into clusters, by people or automatically; each answer of the model is matched to a cluster, or to none (`wrong`);
and the score is the Kullback-Leibler divergence of the model's distribution over the clusters from people's: 0 if they
are the same, higher the more of what people say the model does not say as often.
"""

_CITATION = """\
@inproceedings{cheng2024every,
  title = {Every Answer Matters: Evaluating Commonsense with Probabilistic Measures},
  author = {Cheng, Qi and Boratko, Michael and Yelugam, Pranay Kumar and O'Gorman, Tim and Singh, Nalini and
            McCallum, Andrew and Li, Xiang Lorraine},
  booktitle = {Proceedings of the 62nd Annual Meeting of the Association for Computational Linguistics},
  year = {2024},
  eprint = {2406.04145},
  archivePrefix = {arXiv},
  url = {https://arxiv.org/abs/2406.04145}
}
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions (`list`): for each question the model's answers: a list of strings, where repeats are counts, or of
        `{"text", "count"}`, or `{"id", "answers"}` with either. Or the answers to one question.
    references (`list`): for each question people's answers: the same, where an answer may bear a `"cluster"` and a
        question a `"question"`. Matched to the predictions by id, or by place where there are no ids.
    clustering (`str`): `"human"`: people's clusters; `"hac"`, `"xmeans"`, `"gmeans"`: found from the embeddings;
        `"none"`: each different answer is one. Default `"auto"`: people's if every answer bears one, else `"hac"`.
    matcher (`str`): `"cosine"` (default), `"wordnet"`, `"gp"` (Gaussian-process regression), `"cascade"` (equal text,
        equal lemmas, WordNet, then cosine), or `"human"`: by `labels`.
    threshold (`float`): the least score of a match. Default 0.55 for cosine, also within the cascade, 0.5 for WordNet,
        0.2 for gp.
    smoothing (`float`): what is added to the count of each cluster, and of `wrong`, on both sides. Default 1.
    debias (`bool`): subtract what sampling alone adds to the divergence, as the jackknife estimates it; not below 0.
    parity (`bool`): the original, quirks and all: people's side is not smoothed where the clusters are automatic, and
        with WordNet answers are cut to 50 characters and any score above 0 is a match.
    linkage (`str`): of `"hac"`: a method of `scipy.cluster.hierarchy.linkage`. Default `"average"`.
    distance (`float`): of `"hac"`: where the tree is cut. Default 0.95.
    seed (`int`): of `"xmeans"` and `"gmeans"`. Default 0.
    labels (`dict`): with `matcher="human"`, people's cluster for each answer of the model: question id to answer to
        cluster, or `"wrong"`.
    confidence (`float`): level of a confidence interval, such as 0.95: a seeded bootstrap over questions.
    model (`str` or path): a sentence-transformers model. Default `"all-MiniLM-L6-v2"`, which needs no network.
    vectors (`str`, path or mapping): a fastText or word2vec file, averaged over an answer's words, in place of `model`.
    precision (`str`): `"float32"`, `"bfloat16"`, `"float16"` or, on the CPU, `"int8"` for the encoder. Default
        as stored, or what is as good (cosines above 0.999999) and faster.
    batch_size (`int`), device (`str`): of the encoder; they do not change the score.
    cache_dir (`str` or path): a folder that keeps embeddings, so that a text is encoded once, in whichever run. Not the
        `cache_dir` of `evaluate.load`, which is where the module's code goes.
    details (`bool`): add, for each question, its clusters, both distributions and where each answer went.
    progress (`bool`): show a bar; by default where logging is at INFO.

Returns:
    probeval (`float`): mean over questions of KL(people || model) in nats, >= 0; lower is closer.
    scores (`list[float]`): that of each question.
    confidence_interval (`list[float]`): with `confidence`, `[low, high]` of the main score; None for fewer than two.
    wrong_rate (`float`): mean over answered questions of the share of answers that match no cluster, in [0, 1].
    coverage (`float`): mean over questions of the share of people's answers whose cluster was hit, in [0, 1].
    n_clusters (`float`): mean number of clusters of a question.
    semantic_entropy (`dict`): mean entropy of the distributions in nats, `"gold"` and `"model"`.
    n_answers (`list[int]`): how many answers the model gave to each question: the score depends on it.
    n_empty (`int`): how many questions it gave none to.
    clustering_quality (`dict`): where people's clusters are there but others are used, how well these agree:
        `"blanc"`, `"adjusted_rand"`, `"v_measure"`.
    details (`list[dict]`): with `details=True`.
    signature (`str`): the settings that decide the score.

Raises:
    TypeError, ValueError: for input that cannot be scored; the message names the parameter and the question.

Examples:

    >>> import evaluate
    >>> probeval = evaluate.load("metrics/probeval")
    >>> people = [["a kettle"] * 12 + ["a pot"] * 5 + ["a cup"] * 3]
    >>> close = probeval.compute(predictions=[["kettle"] * 10 + ["pot"] * 6 + ["cup"] * 4], references=people)
    >>> far = probeval.compute(predictions=[["cup"] * 12 + ["a helicopter"] * 8], references=people)
    >>> round(close["probeval"], 2), round(far["probeval"], 2)
    (0.01, 1.96)
    >>> far["wrong_rate"], far["coverage"]
    (0.4, 0.15)
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class Probeval(TextMetric, evaluate.Metric):
    """KL divergence of a model's distribution of answers from people's, over clusters of answers."""

    from_cfc = staticmethod(from_cfc)
    from_protoqa = staticmethod(from_protoqa)
    labels_from_cfc = staticmethod(labels_from_cfc)

    _items = QUESTIONS
    _parts = AnswerParts

    def _info(self) -> evaluate.MetricInfo:
        text, count = datasets.Value("string"), datasets.Value("int64")
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=datasets.Features(
                {
                    "predictions": {"id": text, "answers": [{"text": text, "count": count}]},
                    "references": {
                        "id": text,
                        "question": text,
                        "answers": [{"text": text, "count": count, "cluster": text}],
                    },
                }
            ),
            reference_urls=["https://arxiv.org/abs/2406.04145"],
        )

    def _canonical(self, predictions: Any, references: Any) -> dict[str, Any]:
        given, gold = parse_rows(predictions, references)
        return {"predictions": given, "references": gold}

    def _compute(
        self,
        *,
        predictions: Any,
        references: Any,
        clustering: str = "auto",
        matcher: str = "cosine",
        threshold: float | None = None,
        smoothing: float = 1.0,
        debias: bool = False,
        parity: bool = False,
        linkage: str = "average",
        distance: float = 0.95,
        seed: int = 0,
        labels: Any = None,
        confidence: float | None = None,
        model: Any = DEFAULT_MODEL,
        vectors: Any = None,
        precision: str | None = None,
        batch_size: int | None = None,
        device: str | None = None,
        cache_dir: Any = None,
        details: bool = False,
        progress: bool | None = None,
    ) -> dict[str, Any]:
        asked = questions(*parse_rows(predictions, references))
        level = parse_confidence(confidence)
        encoder = EncoderSettings(model, precision, batch_size, device, cache_dir, progress)
        chosen = Settings(clustering, matcher, threshold, linkage, distance, seed, smoothing, debias, parity)
        settings = resolve(chosen, asked)
        if (labels is not None) != (matcher == "human"):
            raise ValueError(f"labels go with matcher='human', and only with it. Got matcher={matcher!r}.")
        by_people = parse_labels(labels, asked) if matcher == "human" else [None] * len(asked)
        if vectors is not None or not needs_embeddings(settings):
            encoder.check_unused("no encoder runs")
        embeddings, signed = None, {}
        if needs_embeddings(settings):
            texts = sorted({text for question in asked for text in [*question.gold, *question.answers] if text.strip()})
            if vectors is not None:
                matrix, signed["vectors"] = average_word_vectors(texts, load_vectors(vectors))
            else:
                one_set = TextSets(texts, np.array([len(texts)]), nested=False)
                matrix, signed = embed_sets(one_set, None, encoder)
            embeddings = Embeddings(texts, matrix)
        wordnet = None
        if needs_wordnet(settings):
            loaded = load_wordnet()
            wordnet, signed["wordnet"] = WordNetMatcher(loaded), loaded.version

        scored, clusters_of, weights_of = [], [], []
        for question, own in zip(asked, by_people, strict=True):
            clusters_of.append(cluster(question, settings, embeddings))
            weights_of.append(match(question, clusters_of[-1], settings, embeddings, wordnet, own))
            scored.append(score(question.counts, weights_of[-1], clusters_of[-1], settings))
            if np.isinf(scored[-1].score):
                raise ValueError(
                    f"smoothing is {smoothing}, and the model gives no answer in some cluster of question "
                    f"{question.name!r}: the divergence is infinite. Pass smoothing > 0."
                )

        sizes = np.array([int(question.counts.sum()) for question in asked])
        scores = [one.score for one in scored]
        result: dict[str, Any] = {
            "probeval": mean(scores),
            "scores": scores,
            "wrong_rate": mean([one.wrong_rate for one in scored if one.wrong_rate is not None]),
            "coverage": mean([one.coverage for one in scored]),
            "n_clusters": mean([len(clusters.labels) for clusters in clusters_of]),
            "semantic_entropy": {
                "gold": mean([one.gold_entropy for one in scored]),
                "model": mean([one.model_entropy for one in scored]),
            },
            "n_answers": sizes.tolist(),
            "n_empty": int((sizes == 0).sum()),
        }
        if level is not None:
            result["confidence_interval"] = confidence_interval(level, np.array(scores))
        if settings.clustering != "human" and all(question.clusters for question in asked):
            compared = [
                compare_clusterings(clusters.counts.argmax(axis=1), question.gold_counts.argmax(axis=1))
                for question, clusters in zip(asked, clusters_of, strict=True)
            ]
            result["clustering_quality"] = {name: mean([one[name] for one in compared]) for name in compared[0]}
        if details:
            result["details"] = [
                describe_question(*row) for row in zip(asked, clusters_of, weights_of, scored, strict=True)
            ]
        result["signature"] = signature(
            "probeval",
            **settings.signed(),
            **signed,
            n_answers=format_sizes(sizes),
            **confidence_settings(level),
        )
        return result

    def _n_items(self, result: Mapping[str, Any], name: str) -> int:
        answered = sum(n_answers > 0 for n_answers in result["n_answers"])
        return answered if name == "wrong_rate" else len(result["scores"])

    def protoqa_scores(self, *, predictions: Any, references: Any) -> dict[str, Any]:
        """Score ranked answers by the rules of ProtoQA (Boratko et al., 2020), the baseline that the paper beats.

        Args:
            predictions: as for `compute`. Answers are ranked by count, and those of equal count as they come: a list
                without repeats is a ranking.
            references: as for `compute`; where an answer of a question bears no cluster, each is its own.

        Returns
        -------
            A dict with `exact` and `wordnet`, for equal texts and for WordNet scores above 0.5: in each, the mean over
            questions of max_answers_1, _3, _5, _10 and max_incorrect_1, _3, _5, in [0, 1], higher is better; `scores`,
            the same for each question; and `signature`.

        Raises
        ------
            TypeError, ValueError: for input that cannot be scored.

        """
        given, gold = parse_rows(predictions, references)
        wordnet = load_wordnet()
        matcher = WordNetMatcher(wordnet)
        rows: list[dict[str, dict[str, float]]] = []
        for question, row in zip(questions(given, gold), given, strict=True):
            counts = question.gold_counts if question.clusters else np.diag(question.gold_counts[:, 0])
            matches = protoqa_matches(rank(row["answers"]), question.gold, matcher)
            rows.append(
                {
                    name: ranked_scores(cluster_maximum(found, counts > 0), counts.sum(axis=0))
                    for name, found in matches.items()
                }
            )
        result: dict[str, Any] = {
            name: {rule: mean([row[name][rule] for row in rows]) for rule in rules} for name, rules in rows[0].items()
        }
        return {**result, "scores": rows, "signature": signature("protoqa_scores", wordnet=wordnet.version)}
