"""The tasks for Inspect with its mock model: `inspect eval tests/mock_tasks.py` runs them without a network."""

import itertools

from inspect_ai import task, task_with
from inspect_ai.model import ModelOutput, ModelUsage, get_model

from text_metrics.integrations.inspect import tasks


def mock_model():
    """Return the mock model with numbered answers. Outputs without a usage would make it download a tokenizer."""
    numbers = itertools.count()

    def answer(messages, *settings):
        output = ModelOutput.from_content("mockllm/model", f" {messages[-1].text} Answer {next(numbers)}.\n")
        output.usage = ModelUsage()
        return output

    return get_model("mockllm/model", custom_outputs=answer)


@task
def mock_diversity():
    return task_with(tasks.text_metrics_diversity(), model=mock_model())


@task
def mock_probeval():
    return task_with(tasks.text_metrics_probeval(), model=mock_model())
