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
Row = dict[str, Any]


class Answers(SamplingMetric, SampleLevelComputation):
    """Collect what is scored once for all prompts: the answers to each, and what people answered."""

    def num_samples(self) -> int:
        """Return how often each prompt is answered."""
        return N_ANSWERS

    def compute(self, doc: Doc, model_response: ModelResponse, **_: Any) -> Row:
        """Return the answers to a prompt, with people's."""
        texts = [text.strip() for text in model_response.final_text]
        row = doc.specific or {}
        return {"texts": texts, "prompt": row.get("prompt"), "people": row.get("answers")}


def diversity(rows: list[Row]) -> dict[str, float]:
    """Score the answers by their diversity and their quality."""
    sets = [row["texts"] for row in rows]
    with_prompts = scores.vendi_embed_contexts([(row["texts"], row["prompt"]) for row in rows])
    return {"vendi_embed": scores.vendi_embed(sets), scores.CONTEXTS: with_prompts, "gruen": scores.gruen(sets)}


def divergence(rows: list[Row]) -> dict[str, float]:
    """Compare the answers with people's."""
    return {"probeval": scores.probeval([(row["texts"], row["people"]) for row in rows])}


def _task(name: str, subset: str, key: str, score: Any) -> LightevalTaskConfig:
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
    _task("text_metrics_diversity", "prompts", "prompt", diversity),
    _task("text_metrics_probeval", "questions", "question", divergence),
]
