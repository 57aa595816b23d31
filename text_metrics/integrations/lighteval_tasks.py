"""Tasks for lighteval's own command: the answers to one prompt are a set of texts."""

from pathlib import Path
from typing import Any

from lighteval.metrics.metrics_sample import SampleLevelComputation, SamplingMetric
from lighteval.metrics.utils.metric_utils import SampleLevelMetric
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.lighteval_task import LightevalTaskConfig
from lighteval.tasks.requests import Doc, SamplingMethod

from text_metrics.integrations.lm_eval import scores

DATA = Path(__file__).parent / "data"
N_ANSWERS = 8


class Answers(SamplingMetric, SampleLevelComputation):
    """Collect the answers, which are scored once for all prompts."""

    def num_samples(self) -> int:
        """Return how often each prompt is answered."""
        return N_ANSWERS

    def compute(self, doc: Doc, model_response: ModelResponse, **_: Any) -> dict[str, Any]:
        """Return the answers to a prompt, with its row."""
        return {"texts": model_response.final_text, "row": doc.specific}


def _task(name: str, subset: str, key: str, read: Any) -> LightevalTaskConfig:
    def score(answers: list[dict[str, Any]]) -> dict[str, float]:
        rows = [read(each["row"], [each["texts"]]) for each in answers]
        by_metric: dict[str, float] = {}
        for metric in rows[0]:
            score_prompts = getattr(scores, metric)
            by_metric[metric] = score_prompts([row[metric] for row in rows])
        return by_metric

    # A dict as the result has no bootstrap, which would score everything a thousand times.
    metric = SampleLevelMetric(name, False, SamplingMethod.GENERATIVE, Answers(), score)

    def prompt(row: dict[str, Any], task_name: str) -> Doc:
        return Doc(query=row[key], choices=[""], gold_index=0, task_name=task_name, specific=row)

    return LightevalTaskConfig(
        name=name,
        prompt_function=prompt,
        hf_repo=str(DATA),
        hf_subset=subset,
        evaluation_splits=["test"],
        metrics=[metric],
        generation_size=32,
        stop_sequence=[],
    )


TASKS_TABLE = [
    _task("text_metrics_diversity", "prompts", "prompt", scores.texts),
    _task("text_metrics_probeval", "questions", "question", scores.answers),
]
