"""Pools of answers that people have put into clusters, and the sets that are drawn from them by the paper's schemes."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from text_metrics.commands.shared.files import read_json, read_objects, read_part
from text_metrics.metrics.probeval.probeval_formats import WRONG, Question, parse_rows, read_questions
from text_metrics.metrics.probeval.probeval_released import from_released, parse_target

GOLD_SAMPLE = 50  # gold answers that join the pool, so that it reaches each cluster
MIN_ANSWERS = 10  # in a pool
MOST_ANSWERS = 1_000_000  # to a question: each is drawn from one by one


class Pool(NamedTuple):
    """A question, and the answers to draw from.

    question : its `answers` are the u different answers of the pool, and `counts` their counts
    columns : ndarray of shape (u,), the cluster of each answer by people; the last, c, is `wrong`
    """

    question: Question
    columns: np.ndarray

    def shares(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the add-one-smoothed distributions of the gold answers and of the pool over clusters and `wrong`."""
        gold = np.append(self.question.gold_counts.sum(axis=0), 0.0) + 1
        answers = np.bincount(self.columns, weights=self.question.counts, minlength=len(gold)) + 1
        return gold / gold.sum(), answers / answers.sum()


def read(targets: Path, predictions: Path) -> list[tuple[Question, dict[str, list]]]:
    """Read questions, each with the labelled answers of models: a dict from text to [cluster, count].

    Predictions without labels have those of the gold answers that they equal; the others are left out.
    """
    content = read_json(predictions)
    keys = set(content) if isinstance(content, dict) else set()
    is_unlabelled = "model_answers" in keys and "annotated_prediction_data" not in keys
    key, kind = ("model_answers", list) if is_unlabelled else ("annotated_prediction_data", dict)
    labelled: dict[str, dict[str, list]] = {}
    for identity, answers in read_part(content, str(predictions), dict, key).items():
        where = f"{predictions}: question {identity!r}"
        entries = read_part(answers, where, kind)
        if is_unlabelled:
            labelled[identity] = {str(text): [None, count] for text, count in Counter(entries).items()}
            continue
        labelled[identity] = {
            text: [str(read_part(entry, f"{where}, answer {text!r:.80}", object, "cluster")), _count(entry, where)]
            for text, entry in entries.items()
        }
    records = list(read_objects(targets))
    for where, record in records:
        parse_target(record, where)
    try:
        rows = from_released(
            [record for _, record in records], {identity: list(answers) for identity, answers in labelled.items()}
        )
        questions = read_questions(rows["predictions"], rows["references"])
    except (TypeError, ValueError) as error:
        raise ValueError(f"{targets}: {error}") from None
    for question in questions:
        if question.clusters is None or question.gold_counts.sum() > MOST_ANSWERS:
            raise ValueError(
                f"{targets}: question {question.name!r} must have a cluster for each answer, and at most "
                f"{MOST_ANSWERS:,} answers."
            )
    if is_unlabelled:
        return [(question, _label_equal(question, labelled[question.name])) for question in questions]
    return [(question, labelled[question.name]) for question in questions]


def _label_equal(question: Question, answers: dict[str, list]) -> dict[str, list]:
    """Label the answers that equal a gold answer, with its larger cluster if it is in two; leave out the others."""
    assert question.clusters is not None
    columns = dict(zip(question.gold, question.gold_counts.argmax(axis=1).tolist(), strict=True))
    return {text: [question.clusters[columns[text]], count] for text, (_, count) in answers.items() if text in columns}


def _count(entry: Any, where: str) -> int:
    count = read_part(entry, where, int, "count")
    if not 1 <= count <= MOST_ANSWERS:
        raise ValueError(f"{where}: a count must be in [1, {MOST_ANSWERS:,}]. Got {count!r:.80}.")
    return count


def make_pool(question: Question, gold: list[dict], labelled: dict[str, list]) -> Pool | None:
    """Make a pool of a question and labelled answers; None if there are too few to draw from."""
    clusters = sorted({answer["cluster"] for answer in gold})
    columns = {label: i for i, label in enumerate(clusters)}
    answers = [{"text": text, "count": count} for text, (_, count) in labelled.items()]
    reached = {label for label, _ in labelled.values() if label in columns}
    if len(clusters) < 2 or len(reached) < 2 or sum(count for _, count in labelled.values()) < MIN_ANSWERS:
        return None
    rows = parse_rows([{"id": question.name, "answers": answers}], [{"id": question.name, "answers": gold}])
    (pooled,) = read_questions(*rows)
    answer_columns = [columns.get(labelled[text][0], len(clusters)) for text in pooled.answers]
    return Pool(pooled, np.array(answer_columns))


def gold_entries(question: Question) -> list[dict]:
    """List the gold answers of a question: an entry for each answer and cluster."""
    assert question.clusters is not None
    return [
        {"text": question.gold[i], "count": int(question.gold_counts[i, j]), "cluster": question.clusters[j]}
        for i, j in np.argwhere(question.gold_counts > 0).tolist()
    ]


def all_answers(question: Question, labelled: dict[str, list], rng: np.random.Generator) -> Pool | None:
    """Pool the model's answers with a sample of the gold answers, as the paper does."""
    entries = gold_entries(question)
    pool = {text: list(entry) for text, entry in labelled.items()}
    total = sum(entry["count"] for entry in entries)
    for label in sorted({entry["cluster"] for entry in entries}):
        texts = [entry["text"] for entry in entries if entry["cluster"] == label for _ in range(entry["count"])]
        number = min(len(texts), int(np.ceil(len(texts) / total * GOLD_SAMPLE)))
        for text, count in Counter(rng.choice(texts, number, replace=False).tolist()).items():
            pool.setdefault(text, [label, 0])[1] += count
    return make_pool(question, entries, pool)


def unseen_answers(question: Question, labelled: dict[str, list], rng: np.random.Generator) -> Pool | None:
    """Pool the model's answers that equal no gold answer."""
    gold = {text.strip().lower() for text in question.gold}
    pool = {text: entry for text, entry in labelled.items() if text.strip().lower() not in gold}
    return make_pool(question, gold_entries(question), pool)


def held_out_answers(question: Question, labelled: dict[str, list], rng: np.random.Generator) -> Pool | None:
    """Hold out half of the gold strings of each cluster, and pool them with the model's wrong answers."""
    gold, pool = [], {text: entry for text, entry in labelled.items() if entry[0] == WRONG}
    entries = gold_entries(question)
    for label in sorted({entry["cluster"] for entry in entries}):
        members = [entry for entry in entries if entry["cluster"] == label]
        order = rng.permutation(len(members)).tolist()
        gold_texts = {members[i]["text"] for i in order[: (len(members) + 1) // 2]}
        gold += [entry for entry in members if entry["text"] in gold_texts]
        pool |= {entry["text"]: [label, entry["count"]] for entry in members if entry["text"] not in gold_texts}
    texts = {entry["text"] for entry in gold}
    return make_pool(question, gold, {text: entry for text, entry in pool.items() if text not in texts})


def among_other_questions(
    questions: list[Question], question: Question, labelled: dict[str, list], rng: np.random.Generator
) -> Pool | None:
    """Hold out half of the gold strings of each cluster; the wrong answers are people's to the other questions."""
    gold = {text.strip().lower() for text in question.gold}
    tokens = [
        text
        for other in questions
        if other.name != question.name
        for text, count in zip(other.gold, other.gold_counts.sum(axis=1).astype(int).tolist(), strict=True)
        if text.strip().lower() not in gold
        for _ in range(count)
    ]
    number = min(int(question.gold_counts.sum() // 2), len(tokens))
    wrong = Counter(rng.choice(tokens, number, replace=False).tolist())
    return held_out_answers(question, {text: [WRONG, count] for text, count in wrong.items()}, rng)


VIEWS: dict[str, Callable[[Question, dict[str, list], np.random.Generator], Pool | None]] = {
    "all answers": all_answers,
    "the model's answers that equal no gold answer": unseen_answers,
    "held-out gold answers, none of which equals one that is left": held_out_answers,
}


def centered(gold: np.ndarray, answers: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Mix the pool's distribution with people's and the uniform one, at least half of it the pool's."""
    weight = rng.uniform(0.5, 1)
    other = rng.uniform()
    return weight * answers + (1 - weight) * (other * gold + (1 - other) / len(gold))


def diverse(gold: np.ndarray, answers: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Mix people's distribution with the uniform one."""
    weight = rng.uniform()
    return weight * gold + (1 - weight) / len(gold)


def missing_answer(gold: np.ndarray, answers: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Leave out some clusters, at least one, and keep at least two."""
    share = gold.copy()
    share[rng.choice(len(gold), rng.integers(1, max(len(gold) - 1, 2)), replace=False)] = 0.0
    return share / share.sum()


def wrong_ranking(gold: np.ndarray, answers: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Permute people's shares over the clusters."""
    share = rng.permutation(gold)
    while np.ptp(gold) > 0 and (share == gold).all():
        share = rng.permutation(gold)
    return share


def wrong_score(gold: np.ndarray, answers: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Move each share by up to half of its distance to the next, which keeps the ranking."""
    order = np.argsort(-gold, kind="stable")
    gaps = np.abs(np.diff(gold[order]))
    room = np.minimum(np.append(np.inf, gaps), np.append(gaps, np.inf)) / 2
    room = np.minimum(room, np.minimum(gold[order], 1 - gold[order]))
    share = gold.copy()
    share[order] += rng.uniform(-room, room)
    return share / share.sum()


SCHEMES: tuple[Callable[[np.ndarray, np.ndarray, np.random.Generator], np.ndarray], ...] = (
    centered,
    diverse,
    missing_answer,
    wrong_ranking,
    wrong_score,
)


def draw(pool: Pool, scheme: Callable, rng: np.random.Generator) -> np.ndarray:
    """Draw a set without replacement, as large as the scheme's distribution allows: the counts of answers, (u,)."""
    gold, answers = pool.shares()
    share = scheme(gold, answers, rng)
    # As in the original, each cluster counts one answer more than it has; drawing that one gives no answer.
    sizes = np.bincount(pool.columns, weights=pool.question.counts, minlength=len(gold)).astype(int) + 1
    wanted = share * sizes.sum()
    ratio = min(float(np.min(np.divide(sizes, wanted, out=np.ones(len(gold)), where=wanted > sizes))), 1.0)
    numbers = np.rint(wanted * ratio).astype(int)
    if scheme in (wrong_ranking, wrong_score):
        numbers = _each_once(numbers)
        # Small sets grow until they rank the clusters as the scheme does.
        while ratio + 0.1 <= 1 and not np.array_equal(_order(numbers), _order(share)):
            ratio += 0.1
            numbers = _each_once(np.rint(wanted * ratio).astype(int))
    drawn = np.zeros(len(pool.columns))
    for column, (size, number) in enumerate(zip(sizes, np.minimum(numbers, sizes), strict=True)):
        members = np.flatnonzero(pool.columns == column)
        tokens = np.repeat(members, pool.question.counts[members].astype(int))
        picked = rng.choice(size, number, replace=False)
        np.add.at(drawn, tokens[picked[picked < size - 1]], 1)
    return drawn


def _each_once(numbers: np.ndarray) -> np.ndarray:
    return numbers + bool((numbers == 0).any())


def _order(shares: np.ndarray) -> np.ndarray:
    return np.argsort(-shares, kind="stable")
