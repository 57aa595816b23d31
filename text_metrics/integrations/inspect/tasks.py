"""Tasks for Inspect: the answers of all epochs of a sample are a set of texts."""

from pathlib import Path
from typing import Any

from inspect_ai import Epochs, Task, task
from inspect_ai.dataset import Sample, json_dataset
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, ScoreReducer, Target, metric, score_reducer, scorer
from inspect_ai.solver import TaskState, generate

from text_metrics.integrations.lm_eval import scores as of_all

DATA = Path(__file__).resolve().parents[1] / "data"


@score_reducer(name="collect")
def collect() -> ScoreReducer:
    """Collect the answers of all epochs of a sample in a list."""

    def reduce(scores: list[Score]) -> Score:
        return Score(value=[score.as_str() for score in scores])

    return reduce


def _of_samples(name: str, read: Any = of_all.texts) -> Metric:
    """Score all samples together, by what is read from the answers and the metadata of each."""

    def value(scores: list[SampleScore]) -> float:
        rows = [read(item.sample_metadata or {}, [item.score.as_list()]) for item in scores]
        return getattr(of_all, name)([row[name] for row in rows])

    return value


@metric
def vendi_embed() -> Metric:
    """Mean Vendi score of the samples."""
    return _of_samples("vendi_embed")


@metric
def vendi_embed_contexts() -> Metric:
    """Mean Vendi score of the samples, without what the answers share with the prompt in the metadata."""
    return _of_samples("vendi_embed_contexts")


@metric
def gruen() -> Metric:
    """Mean quality of all answers."""
    return _of_samples("gruen")


@metric
def probeval() -> Metric:
    """Mean divergence of the model's answers from people's, which are in the metadata of the samples."""
    return _of_samples("probeval", of_all.answers)


@scorer(metrics=[vendi_embed(), vendi_embed_contexts(), gruen()])
def answer() -> Scorer:
    """Return the answer itself as the score of an epoch."""

    async def score(state: TaskState, target: Target) -> Score:
        return Score(value=state.output.completion.strip())

    return score


@task
def text_metrics_diversity(data: str = str(DATA / "prompts.jsonl")) -> Task:
    """Score the answers to the prompts of a JSONL file by their diversity and their quality."""
    samples = json_dataset(data, lambda row: Sample(input=row["prompt"], metadata={"prompt": row["prompt"]}))
    return Task(dataset=samples, solver=generate(), scorer=answer(), epochs=Epochs(8, collect()))


@task
def text_metrics_probeval(data: str = str(DATA / "questions.jsonl")) -> Task:
    """Compare the answers to the questions of a JSONL file with people's answers."""
    samples = json_dataset(data, lambda row: Sample(input=row["question"], metadata={"answers": row["answers"]}))
    return Task(dataset=samples, solver=generate(), scorer=answer(), metrics=[probeval()], epochs=Epochs(8, collect()))
