"""How a question is put to a model."""

from text_metrics.commands.probe.files import Asked, Shot
from text_metrics.commands.shared.causal import example_turns

INSTRUCTIONS = (
    "Answer each question as a person in a survey would: with the first answer that comes to mind, in a few words. "
    "Give one answer and nothing else."
)


def messages(question: Asked, shots: list[Shot]) -> list[dict[str, str]]:
    """Write the messages for a chat model: the instructions, the examples with their answers, and the question."""
    return example_turns(INSTRUCTIONS, [(shot.question, shot.answer) for shot in shots], question.text())


def completion(question: Asked, shots: list[Shot]) -> str:
    """Write the text that a model without a chat template completes with its answer."""
    blocks = [INSTRUCTIONS, *(f"Q: {shot.question}\nA: {shot.answer}" for shot in shots), f"Q: {question.text()}\nA:"]
    return "\n\n".join(blocks)
