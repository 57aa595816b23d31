"""Demo of probeval: the distribution of a model's answers to a question, compared with people's."""

import math
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

# The kit is in the parent folder in the checkout, and in the folder of this file in a Space.
sys.path.append(str(Path(__file__).resolve().parents[1]))

import gradio as gr
from _kit import inputs, metric, sets
from _kit.page import Box, Example, Picture, Result, Space, build, launch
from _kit.show import panels, plots
from _kit.show.downloads import Table

probeval = metric.load(__file__, "probeval")

LIMITS = inputs.Limits(sets=50, texts=1_000, text_characters=300, characters=30_000)
MOST_COUNTED = 100_000
CLUSTERINGS = {
    "auto": "As given, else found",
    "soft": "Found: by degrees",
    "hac": "Found: HAC",
    "xmeans": "Found: X-means",
    "gmeans": "Found: G-means",
    "none": "One cluster an answer",
}
MATCHERS = {
    "auto": "As the clusters",
    "cosine": "Meaning (cosine)",
    "gp": "Gaussian process",
    "wordnet": "WordNet",
    "cascade": "Cascade",
}
# The lower bound of each interpretation.
WORDS = (
    (0.8, "The model answers very differently from people."),
    (0.3, "The model answers differently from people."),
    (0.1, "The model answers somewhat differently from people."),
    (0.02, "The model answers much as people do."),
    (0.0, "The model answers almost exactly as people do."),
)
ROLES = (
    inputs.Role("text", "Answer", True, ("answer", "text", "answers")),
    inputs.Role("who", "Who: people or model", True, ("who", "side", "source", "from")),
    inputs.Role("count", "Count", False, ("count", "n", "times")),
    inputs.Role("cluster", "Cluster", False, ("cluster", "label", "group")),
    inputs.Role("question", "Question", False, ("question", "id", "qid", "prompt")),
)
_MOST_DIGITS = 9
# Upper bounds on what is drawn.
MOST_CLUSTERS = 20
MOST_CHIPS = 12
_PEOPLE = {"people", "person", "human", "humans", "gold", "reference", "references"}
_MODEL = {"model", "models", "prediction", "predictions", "machine", "llm"}
_WRONG = "wrong"
SIDES = ("people", "model")

_KETTLE = "kettle × 42\nelectric kettle × 8\npot × 21\nsaucepan × 9\nmicrowave × 7\ncup × 5\nmug × 4\ncampfire × 4"
_EXAMPLES = (
    Example(
        "Boil water: much like people", (_KETTLE, "a kettle × 45\na pot × 30\nsaucepan × 10\nmicrowave × 10\nmug × 5")
    ),
    Example("Boil water: only the favourite", (_KETTLE, "kettle × 100")),
    Example("Boil water: odd ideas", (_KETTLE, "cup × 40\nhelicopter × 25\nkettle × 20\nfridge × 15")),
)


def has_wordnet() -> bool:
    """Return whether WordNet is installed; two of the matchers need it."""
    try:
        metric.part(probeval, "probeval_wordnet").load_wordnet()
    except (ImportError, OSError, LookupError, ValueError):
        return False
    return True


if not has_wordnet():
    MATCHERS = {name: label for name, label in MATCHERS.items() if name in ("auto", "cosine", "gp")}


def from_boxes(people: str, model: str) -> list[dict[str, Any]]:
    """Parse one question from the two boxes."""
    rows = [
        {"text": text, "who": who, "count": n}
        for who, box in (("people", people), ("model", model))
        for text, n in counted(box)
    ]
    return from_rows(rows)


def counted(box: str) -> list[tuple[str, str]]:
    """Parse one answer a line, with an optional count after it."""
    found = []
    for line in inputs.lines_of(box):
        if line:
            found.append(answer_and_count(line))
    return found


def answer_and_count(line: str) -> tuple[str, str]:
    """Split a line into an answer and its count: "pot × 21", "pot×21", "pot x 21", "pot x21" or "pot<tab>21".

    An "x" starts a count only after a space: "Xbox 360", "Netflix 4" and "4x4" are answers.
    """
    rest = line.rstrip("0123456789")
    count = line[len(rest) :]
    if not count or not count.isascii() or len(count) > _MOST_DIGITS:
        return line, "1"
    text = rest.rstrip()
    if text.endswith("×") or (text.endswith("x") and text[-2:-1].isspace()):
        text = text[:-1].rstrip()
    elif "\t" in rest[len(text) :]:
        pass
    else:
        return line, "1"
    return (text, count) if text else (line, "1")


def from_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Group rows by question into people's answers, with their clusters, and the model's answers."""
    asked: dict[str, dict[str, Any]] = {}
    for i, row in enumerate(rows, 1):
        who = str(row.get("who", "")).strip().lower()
        if who not in _PEOPLE | _MODEL:
            raise inputs.InputError(f"Row {i}: the column “Who” must be people or model. Got “{who[:40]}”.")
        count = str(row.get("count", "") or "1").strip()
        if not re.fullmatch(r"\d{1,9}(\.0)?", count) or int(float(count)) < 1:
            raise inputs.InputError(f"Row {i}: a count must be a positive integer. Got “{count[:40]}”.")
        question = asked.setdefault(str(row.get("question", "")).strip(), {"people": [], "model": []})
        answer: dict[str, Any] = {"text": str(row["text"]).strip(), "count": int(float(count))}
        if who in _PEOPLE and str(row.get("cluster", "")).strip():
            answer["cluster"] = str(row["cluster"]).strip()
        question["people" if who in _PEOPLE else "model"].append(answer)
    return [{"question": name, **answers} for name, answers in asked.items()]


def check(questions: list[dict[str, Any]]) -> None:
    """Check the size of the input, and that both sides have answers."""
    if not questions:
        raise inputs.InputError("There is no answer yet. Write people's answers and the model's, or click an example.")
    if len(questions) > LIMITS.sets:
        raise inputs.InputError(f"Too many questions: {len(questions):,}, the limit here is {LIMITS.sets}.")
    for question in questions:
        name = f"Question “{panels.shorten(question['question'], 40)}”: " if question["question"] else ""
        for who, owner in (("people", "people's answers"), ("model", "the model's answers")):
            if not question[who]:
                raise inputs.InputError(f"{name}{owner} are missing. Write at least one.")
    answers = [answer for question in questions for who in ("people", "model") for answer in question[who]]
    inputs.check_texts([answer["text"] for answer in answers], LIMITS)
    total = sum(answer["count"] for answer in answers)
    if total > MOST_COUNTED:
        raise inputs.InputError(f"The counts are too large: {total:,} in total, the limit here is {MOST_COUNTED:,}.")


def compute(questions: list[dict[str, Any]], settings: dict[str, Any]) -> dict[str, Any]:
    """Check the input and compute the metric."""
    inputs.check_choice("clustering", settings["clustering"], CLUSTERINGS)
    inputs.check_choice("matcher", settings["matcher"], MATCHERS)
    inputs.check_number("threshold", settings["threshold"], 0, 1)
    inputs.check_number("smoothing", settings["smoothing"], 0.001, 1_000)
    inputs.check_number("distance", settings["distance"], 0, 2)
    if not isinstance(settings["debias"], bool):
        raise inputs.InputError("debias must be true or false.")
    check(questions)
    settings = dict(settings)
    if settings["matcher"] == "auto":
        settings["matcher"] = "soft" if settings["clustering"] == "soft" else "cosine"
    if settings["clustering"] == "soft" and settings["matcher"] != "soft":
        raise inputs.InputError("Clusters by degrees have their own way to match. Match “As the clusters”.")
    if settings["matcher"] not in ("cosine", "cascade"):
        # The other matchers have thresholds on other scales.
        del settings["threshold"]
    return probeval.compute(
        predictions=[{"id": str(i), "answers": question["model"]} for i, question in enumerate(questions)],
        references=[
            {"id": str(i), "question": question["question"], "answers": question["people"]}
            for i, question in enumerate(questions)
        ],
        details=True,
        progress=True,
        **settings,
    )


def score(questions: list[dict[str, Any]], chosen: Sequence[int | None], settings: dict[str, Any]) -> Result:
    """Score all questions and draw one."""
    result = compute(questions, settings)
    asked = [i for i in chosen if i is not None and 0 <= i < len(questions)]
    shown = asked[0] if asked else 0
    detail = result["details"][shown]
    names = cluster_names(detail)
    terms_of = {
        label: (p * math.log(p / detail["model_distribution"][label]) if p else 0.0)
        for label, p in detail["gold_distribution"].items()
    }
    people_of, model_of = shares(detail, names)
    labels = largest(names, people_of, model_of)
    cut = sets.first_of(len(labels), len(names), "clusters").replace("first", "largest")
    people, model, terms = ([of[label] for label in labels] for of in (people_of, model_of, terms_of))
    worst = max(range(len(labels)), key=lambda i: terms[i])
    over = max(range(len(labels)), key=lambda i: model[i] - people[i])
    shown_names = [names[label] for label in labels]
    members = [", ".join(answer["text"] for answer in members_of(detail, label)) or names[label] for label in labels]
    return Result(
        answer=answer(result, len(questions)),
        pictures=[
            (
                plots.paired_bars({"People": people, "Model": model}, shown_names, "share of the answers", members),
                surplus(names[labels[over]], labels[over] == _WRONG, model[over] - people[over]) + cut,
            ),
            (
                plots.paired_bars({"Share": terms}, shown_names, "nats", members),
                "The terms add up to the divergence. They use smoothed shares. "
                + (
                    f"“{panels.shorten(names[labels[worst]], 40)}” adds the most."
                    if terms[worst] > 0.005
                    else "None is large."
                ),
            ),
            (
                clusters_panel(detail, {label: names[label] for label in labels}),
                f"People's answers in each cluster, and the model's answers matched to it.{cut}",
            ),
        ],
        details=Table(
            ("Question", "Who", "Answer", "Count", "Cluster"),
            [row for i, found in enumerate(result["details"]) for row in detail_rows(i, questions[i], found)],
        ),
        scores=scores_table(questions, result),
        report={"metric": "probeval", **result, "questions": questions},
        choices=[
            panels.shorten(question["question"] or f"Question {i + 1}", 60) for i, question in enumerate(questions)
        ],
        chosen=[shown],
    )


def shares(detail: dict[str, Any], names: dict[str, str]) -> tuple[dict[str, float], dict[str, float]]:
    """Return the shares of people's answers and of the model's in each cluster, as counted, without smoothing."""
    people, model = dict.fromkeys(names, 0.0), dict.fromkeys(names, 0.0)
    for found in detail["clusters"]:
        people[found["cluster"]] = found["count"]
    for found in detail["assignments"]:
        for label, weight in found["clusters"].items():
            model[label] += found["count"] * weight
    totals = [sum(counts.values()) or 1.0 for counts in (people, model)]
    return (
        {label: count / totals[0] for label, count in people.items()},
        {label: count / totals[1] for label, count in model.items()},
    )


def largest(names: dict[str, str], people: dict[str, float], model: dict[str, float]) -> list[str]:
    """Return the labels of the largest clusters, in the order of `names`; wrong answers are always among them."""
    ranked = sorted(names, key=lambda label: (label != _WRONG, -max(people[label], model[label])))
    kept = set(ranked[:MOST_CLUSTERS])
    return [label for label in names if label in kept]


def scores_table(questions: list[dict[str, Any]], result: dict[str, Any]) -> Table | None:
    """Return the table of the scores of each question, if there are more than two."""
    if len(questions) < 3:
        return None
    rows = [
        [question["question"] or f"Question {i + 1}", score, *(sum(a["count"] for a in question[who]) for who in SIDES)]
        for i, (question, score) in enumerate(zip(questions, result["scores"], strict=True))
    ]
    return Table(("Question", "Divergence in nats", "People's answers", "Model's answers"), rows)


def surplus(name: str, is_wrong: bool, by: float) -> str:
    """Describe the largest surplus of the model."""
    if by < 0.01:
        return "The two distributions are nearly the same."
    if is_wrong:
        return "The largest surplus of the model is in answers that match no cluster."
    return f"The model says “{panels.shorten(name, 40)}” more often than people."


def members_of(detail: dict[str, Any], label: str) -> list[dict[str, Any]]:
    """Return people's answers in a cluster, the most common first."""
    return next((found["answers"] for found in detail["clusters"] if found["cluster"] == label), [])


def closest(found: dict[str, Any]) -> list[str]:
    """Return the cluster to which an answer belongs the most, or several if they tie."""
    most = max(found["clusters"].values())
    return [label for label, weight in found["clusters"].items() if weight >= most - 1e-9]


def cluster_names(detail: dict[str, Any]) -> dict[str, str]:
    """Name each cluster by its most common answer; `wrong` comes last."""
    names = {found["cluster"]: found["answers"][0]["text"] for found in detail["clusters"]}
    return {**names, _WRONG: "wrong: in no cluster"}


def clusters_panel(detail: dict[str, Any], names: dict[str, str]) -> str:
    """Return the clusters with the answers of both sides."""
    blocks = []
    for label, name in names.items():
        said = [
            (found["text"], round(found["count"] * found["clusters"][label], 1))
            for found in detail["assignments"]
            if label in closest(found)
        ]
        people = [(a["text"], a["count"]) for a in members_of(detail, label)]
        blocks.append((name, [("People", people, 0), ("Model", said, 1)]))
    return panels.groups(blocks, MOST_CHIPS)


def detail_rows(i: int, question: dict[str, Any], detail: dict[str, Any]) -> list[list[Any]]:
    """Return each answer with its cluster."""
    names, name = cluster_names(detail), question["question"] or f"{i + 1}"
    rows = [
        [name, "people", answer["text"], answer["count"], names[found["cluster"]]]
        for found in detail["clusters"]
        for answer in found["answers"]
    ]
    return rows + [
        [name, "model", found["text"], found["count"], " or ".join(names[label] for label in closest(found))]
        for found in detail["assignments"]
    ]


def answer(result: dict[str, Any], n: int) -> str:
    """Return the answer: the divergence in nats, wrong answers and coverage."""
    value = result["probeval"]
    words = next(words for least, words in WORDS if value >= least)
    unit = "nats apart" if n == 1 else f"nats apart, mean of {n} questions"
    card = panels.Card(
        "", value, f"{value:.2f}", unit, words, 1 - math.exp(-value), ("0: like people", "unlike people")
    )
    wrong, entropy = result["wrong_rate"], result["semantic_entropy"]
    facts = panels.tiles(
        [
            ("–" if wrong is None else f"{wrong:.0%}", "Wrong", "of the model's answers match no cluster."),
            (f"{result['coverage']:.0%}", "Covered", "of people's answers are in a cluster that the model matches."),
            (f"{result['n_clusters']:.3g}", "Clusters", "of people's answers."),
            (f"{entropy['model']:.2f} / {entropy['gold']:.2f}", "Entropy", "model's and people's, in nats."),
        ]
    )
    notes = []
    if min(result["n_answers"]) < 20:
        notes.append("The model gave fewer than 20 answers, which inflates the divergence. Turn on Debias.")
    return panels.answer([card], "", notes, result["signature"], facts)


def api(
    people: list[str],
    model: list[str],
    clustering: Literal["auto", "soft", "hac", "xmeans", "gmeans", "none"] = "auto",
    matcher: Literal["auto", "cosine", "gp", "wordnet", "cascade"] = "auto",
    threshold: float = 0.55,
    smoothing: float = 1.0,
    distance: float = 0.95,
    debias: bool = False,
) -> dict[str, Any]:
    """Compute the divergence of a model's distribution of answers to one question from people's, in nats.

    Args:
        people: people's answers to the question; repeats are counts.
        model: the model's answers, sampled many times; repeats are counts.
        clustering: the clustering of people's answers.
        matcher: how the model's answers are matched to clusters.
        threshold: the least cosine of a match, from 0 to 1.
        smoothing: the pseudo-count of each cluster, above 0.
        distance: the cut of "hac", from 0 to 2.
        debias: subtract the expected effect of sampling.

    Returns
    -------
        The result of the metric: "probeval", 0 if the distributions are the same; "wrong_rate"; "coverage"; "details"
        with the clusters; and the "signature" to report with the score.

    """
    settings = {
        "clustering": clustering,
        "matcher": matcher,
        "threshold": threshold,
        "smoothing": smoothing,
        "distance": distance,
        "debias": debias,
    }
    for name, answers in (("people", people), ("model", model)):
        if not isinstance(answers, list) or not all(isinstance(text, str) for text in answers):
            raise inputs.InputError(f"{name} must be a list of texts.")
    rows = [{"text": text, "who": who} for who, texts in (("people", people), ("model", model)) for text in texts]
    return compute(from_rows(rows), settings)


def _choices(names: dict[str, str]) -> list[tuple[str, str]]:
    return [(label, value) for value, label in names.items()]


SPACE = Space(
    name="probeval",
    title="Does a model answer as people do?",
    lead="A question of common sense has many right answers, some more common than others. ProbEval compares the "
    "distribution of a model's answers with that of people's.",
    limits=LIMITS,
    boxes=(
        Box("People's answers", "One a line, with an optional count: kettle × 42", "kettle × 42\npot × 21\ncup", 7),
        Box("The model's answers", "Sampled many times for the same question.", "a kettle × 45\nsaucepan × 10", 7),
    ),
    roles=ROLES,
    from_boxes=from_boxes,
    from_rows=from_rows,
    examples=_EXAMPLES,
    settings={
        "clustering": gr.Dropdown(
            _choices(CLUSTERINGS), value="auto", label="Clusters of people's answers", render=False
        ),
        "matcher": gr.Dropdown(_choices(MATCHERS), value="auto", label="Match the model's answers by", render=False),
    },
    more_settings={
        "threshold": gr.Slider(
            0, 1, 0.55, step=0.01, label="Least cosine of a match", info="For cosine and cascade.", render=False
        ),
        "smoothing": gr.Slider(0.1, 5, 1, step=0.1, label="Smoothing", info="Added to each count.", render=False),
        "distance": gr.Slider(
            0.1, 2, 0.95, step=0.05, label="Cut of HAC", info="Smaller makes more clusters.", render=False
        ),
        "debias": gr.Checkbox(False, label="Debias", info="Subtract the expected effect of sampling.", render=False),
    },
    choosers=("Look at",),
    pictures=(
        Picture("People and the model"),
        Picture("Terms of the divergence"),
        Picture("The clusters", is_figure=False),
    ),
    score=score,
    api=api,
    steps=(
        "Write people's answers to a question, one a line, with an optional count.",
        "Write the model's answers. Or click an example.",
        "Press Score.",
    ),
)

demo = build(SPACE)

if __name__ == "__main__":
    probeval.compute(predictions=[["warm"]], references=[["up"]])
    launch(demo, SPACE)
