"""Functions of the tasks of all harnesses: the texts of one prompt, and the score of all prompts."""

import logging
import math
from collections.abc import Mapping
from typing import Any

from text_metrics import load

# lm_eval prints the records of its own loggers.
logger = logging.getLogger("lm_eval.text_metrics")


def texts(doc: Mapping[str, Any], results: list[list[str]]) -> dict[str, Any]:
    """Return the samples of one prompt, for each metric of the task."""
    samples = [text.strip() for text in results[0]]
    return {"vendi_embed": samples, "vendi_embed_contexts": (samples, doc.get("prompt")), "gruen": samples}


def answers(doc: Mapping[str, Any], results: list[list[str]]) -> dict[str, tuple]:
    """Return the model's answers to one question and people's."""
    return {"probeval": ([text.strip() for text in results[0]], doc["answers"])}


def vendi_embed(sets: list[list[str]]) -> float:
    """Return the mean Vendi score of the prompts."""
    return score("vendi_embed", predictions=sets)


def vendi_embed_contexts(pairs: list[tuple]) -> float:
    """Return the mean Vendi score of the prompts, conditional on the prompt of each."""
    samples = [texts_of_prompt for texts_of_prompt, _ in pairs]
    prompts = [prompt for _, prompt in pairs]
    return score("vendi_embed", predictions=samples, contexts=prompts)


def gruen(sets: list[list[str]]) -> float:
    """Return the mean quality of all samples."""
    return score("gruen", predictions=[text for samples in sets for text in samples])


def probeval(pairs: list[tuple]) -> float:
    """Return the mean divergence of the model's answers from people's."""
    given = [answers_of_model for answers_of_model, _ in pairs]
    people = [answers_of_people for _, answers_of_people in pairs]
    return score("probeval", predictions=given, references=people)


def score(name: str, **inputs: Any) -> float:
    """Compute a metric once for all prompts, and log the signature of its score; NaN before the first prompt."""
    if not inputs["predictions"]:
        return math.nan
    result = load(name).compute(**inputs)
    logger.info("signature: %s", result["signature"])
    return result[name]
