"""Demo of probeval: the distribution of one or two models' answers to a question, compared with people's."""

from collections.abc import Sequence
from typing import Any, Literal

import gradio as gr
import ground
import showing
import two_models
from _kit import inputs, language, metric, sets
from _kit.page import Box, Example, Picture, Result, Space, build, launch
from _kit.show import panels, plots
from _kit.show.downloads import Table
from questions import LIMITS, ROLES, check, from_boxes, from_rows, name_of, preview, sides_of, to_rows

probeval = metric.load(__file__, "probeval")

CLUSTERINGS = {
    "auto": "As given, else by degrees",
    "soft": "Found: by degrees",
    "hac": "Found: HAC",
    "xmeans": "Found: X-means",
    "gmeans": "Found: G-means",
    "none": "One cluster for each answer",
}
MATCHERS = {
    "auto": "As the clusters",
    "cosine": "Meaning (cosine)",
    "gp": "Gaussian process",
    "wordnet": "WordNet",
}
_KETTLE = "kettle × 42\nelectric kettle × 8\npot × 21\nsaucepan × 9\nmicrowave × 7\ncup × 5\nmug × 4\ncampfire × 4"
_ALIKE = "a kettle × 45\na pot × 30\nsaucepan × 10\nmicrowave × 10\nmug × 5"
_ODD = "cup × 40\nhelicopter × 25\nkettle × 20\nfridge × 15"
_EXAMPLES = (
    Example("Boil water: much like people", (_KETTLE, _ALIKE, "")),
    Example("Boil water: only the favourite", (_KETTLE, "kettle × 100", "")),
    Example("Boil water: odd ideas", (_KETTLE, _ODD, "")),
    Example("Boil water: two models", (_KETTLE, _ALIKE, _ODD)),
)


def has_wordnet() -> bool:
    """Return whether WordNet is installed; a matcher needs it."""
    try:
        metric.part(probeval, "probeval_wordnet").load_wordnet()
    except (ImportError, OSError, LookupError, ValueError):
        return False
    return True


if not has_wordnet():
    MATCHERS = {name: label for name, label in MATCHERS.items() if name != "wordnet"}


def compute(questions: list[dict[str, Any]], settings: dict[str, Any]) -> dict[str, Any]:
    """Check the input and compute the metric; with "other" and "comparison" if another model answers."""
    settings = checked(settings)
    check(questions)
    sides = sides_of(questions)
    language.check_english(
        [[answer["text"] for question in questions for answer in question[side]] for side in sides], "answers"
    )
    results = [
        probeval.compute(
            predictions=[{"id": str(i), "answers": question[side]} for i, question in enumerate(questions)],
            references=[
                {"id": str(i), "question": question["question"], "answers": question["people"]}
                for i, question in enumerate(questions)
            ],
            details=True,
            progress=True,
            **settings,
        )
        for side in sides[1:]
    ]
    for result in results:
        found = ground.find(probeval, result)
        result["equal_numbers"] = None if found is None else found._asdict()
    if len(results) == 1:
        return results[0]
    sampling = metric.part(probeval, "probeval_sampling")
    comparison = two_models.compare(*results, sampling, debias=settings["debias"])
    return {**results[0], "other": results[1], "comparison": comparison._asdict()}


def checked(settings: dict[str, Any]) -> dict[str, Any]:
    """Check the settings of the page, and return those of the metric."""
    inputs.check_choice("clustering", settings["clustering"], CLUSTERINGS)
    inputs.check_choice("matcher", settings["matcher"], MATCHERS)
    inputs.check_number("threshold", settings["threshold"], 0, 1)
    inputs.check_number("smoothing", settings["smoothing"], 0.001, 1_000)
    inputs.check_number("distance", settings["distance"], 0, 2)
    if not isinstance(settings["debias"], bool):
        raise inputs.InputError("debias must be true or false.")
    settings = dict(settings)
    if settings["clustering"] == "soft" and settings["matcher"] != "auto":
        raise inputs.InputError("Clusters by degrees go with matches by degrees. Match “As the clusters”.")
    if settings["matcher"] != "cosine":
        # The other matchers have thresholds on other scales, and so may the one that "auto" chooses.
        del settings["threshold"]
    return settings


def score(questions: list[dict[str, Any]], chosen: Sequence[int | None], settings: dict[str, Any]) -> Result:
    """Score all questions and draw one."""
    result = compute(questions, settings)
    results = showing.results_by_name(result)
    signature = result["signature"]
    shown = sets.two_of(chosen, len(questions))[0]
    details = {who: of_model["details"][shown] for who, of_model in results.items()}
    # The clusters depend on people's answers alone.
    first = next(iter(details.values()))
    names = showing.cluster_names(first)
    shares = {"People": showing.people_shares(first, names)}
    shares |= {who: showing.model_shares(detail, names) for who, detail in details.items()}
    terms = {who: showing.terms_of(detail) for who, detail in details.items()}
    labels = showing.largest(names, list(shares.values()))
    cut = sets.first_of(len(labels), len(names), "clusters").replace("first", "largest")
    shown_names = [names[label] for label in labels]
    members = [
        ", ".join(answer["text"] for answer in showing.members_of(first, label)) or names[label] for label in labels
    ]
    surpluses = (
        showing.surplus(who if len(details) > 1 else "The model", names, shares["People"], shares[who])
        for who in details
    )
    most = (showing.largest_term(who if len(details) > 1 else "", names, terms[who]) for who in details)
    before = " before Debias" if settings["debias"] else ""
    most_of = " An answer is listed where it belongs the most." if "|clustering:soft|" in signature else ""
    return Result(
        answer=showing.answer(result, signature),
        pictures=[
            (
                plots.paired_bars(showing.by_name(shares, labels), shown_names, "share of the answers", members),
                " ".join(surpluses) + cut,
            ),
            (
                plots.paired_bars(
                    showing.by_name(terms, labels), shown_names, "nats", members, first=1 if len(terms) > 1 else 0
                ),
                f"The terms add up to the divergence{before}. They use smoothed shares. " + " ".join(most),
            ),
            (
                showing.clusters_panel(details, {label: names[label] for label in labels}),
                f"People's answers in each cluster, and the models' answers matched to it.{most_of}{cut}",
            ),
        ],
        details=Table(
            ("Question", "Who", "Answer", "Count", "Cluster"),
            [
                row
                for i in range(len(questions))
                for row in showing.detail_rows(questions[i]["question"] or f"{i + 1}", results, i)
            ],
        ),
        scores=showing.scores_table(questions, results),
        report={"metric": "probeval", **result, "questions": questions},
        choices=[panels.shorten(name_of(questions, i), 60) for i in range(len(questions))],
        chosen=[shown],
    )


def api(
    people: list[str],
    model: list[str],
    clustering: Literal["auto", "soft", "hac", "xmeans", "gmeans", "none"] = "auto",
    matcher: Literal["auto", "cosine", "gp", "wordnet"] = "auto",
    threshold: float = 0.55,
    smoothing: float = 1.0,
    distance: float = 0.95,
    debias: bool = False,
    other: list[str] | None = None,
) -> dict[str, Any]:
    """Compute the divergence of a model's distribution of answers to one question from people's, in nats.

    Args:
        people: people's answers to the question; repeats are counts.
        model: the model's answers, sampled many times; repeats are counts.
        clustering: the clustering of people's answers.
        matcher: how the model's answers are matched to clusters.
        threshold: the minimum cosine of a match, from 0 to 1, for the matcher "cosine".
        smoothing: the pseudo-count of each cluster, above 0.
        distance: the cut of "hac", from 0 to 2.
        debias: subtract the bias of sampling, estimated by the jackknife; a small divergence may fall below 0.
        other: another model's answers to the same question, to compare the two models.

    Returns
    -------
        The result of the metric: "probeval", 0 if the distributions are the same; "wrong_rate"; "coverage"; "details"
        with the clusters; "equal_numbers", the expected divergence and coverage of equal numbers of answers of the
        model and of other people, or None for fewer than 20; and the "signature" to report with the score. If `other`
        has answers, also "other", the same for that model, and "comparison": its divergence less the first model's, of
        equal numbers of answers, with a 95% interval, or None for fewer than 10.

    """
    settings = {
        "clustering": clustering,
        "matcher": matcher,
        "threshold": threshold,
        "smoothing": smoothing,
        "distance": distance,
        "debias": debias,
    }
    given = {"people": people, "model": model, "other": [] if other is None else other}
    for name, answers in given.items():
        if not isinstance(answers, list) or not all(isinstance(text, str) for text in answers):
            raise inputs.InputError(f"{name} must be a list of texts.")
    return compute(from_rows([{"text": text, "who": who} for who, texts in given.items() for text in texts]), settings)


SPACE = Space(
    name="probeval",
    title="Does a model answer as people do?",
    lead="A question of common sense has many right answers, some more common than others. ProbEval compares the "
    "distribution of a model's answers with that of people's. English only.",
    limits=LIMITS,
    boxes=(
        Box("People's answers", "One a line, with an optional count: kettle × 42", "kettle × 42\npot × 21\ncup", 6),
        Box("The model's answers", "Sampled many times for the same question.", "a kettle × 45\nsaucepan × 10", 5),
        Box("Another model's answers", "Optional: to compare two models.", "kettle × 60\nhair dryer × 5", 4),
    ),
    roles=ROLES,
    from_boxes=from_boxes,
    from_rows=from_rows,
    to_rows=to_rows,
    preview=preview,
    examples=_EXAMPLES,
    settings={
        "clustering": gr.Dropdown(inputs.options(CLUSTERINGS), value="auto", label="Clusters of people's answers"),
        "matcher": gr.Dropdown(inputs.options(MATCHERS), value="auto", label="Match the model's answers by"),
    },
    more_settings={
        "threshold": gr.Slider(0, 1, 0.55, step=0.01, label="Minimum cosine", info="Of a match by cosine."),
        "smoothing": gr.Slider(0.1, 5, 1, step=0.1, label="Smoothing", info="Added to each count."),
        "distance": gr.Slider(0.1, 2, 0.95, step=0.05, label="Cut of HAC", info="Smaller makes more clusters."),
        "debias": gr.Checkbox(False, label="Debias", info="Subtract the estimated bias of sampling."),
    },
    choosers=("Look at",),
    pictures=(
        Picture("Shares by cluster"),
        Picture("Terms of the divergence"),
        Picture("The clusters", is_figure=False),
    ),
    score=score,
    api=api,
    steps=(
        "Write people's answers to a question, one a line, with an optional count.",
        "Write a model's answers, and another model's to compare the two. Or click an example.",
        "Press Score.",
    ),
)

demo = build(SPACE)

if __name__ == "__main__":
    probeval.compute(predictions=[["warm"]], references=[["up"]])
    launch(demo, SPACE)
