"""How a question is put to a model."""

from text_metrics.commands.probe.files import Asked, Shot

INSTRUCTIONS = (
    "Answer each question as a person in a survey would: with the first answer that comes to mind, in a few words. "
    "Give one answer and nothing else."
)


def messages(question: Asked, shots: list[Shot]) -> list[dict[str, str]]:
    """Write the messages for a chat model: the instructions, the examples with their answers, and the question."""
    turns = []
    for shot in shots:
        turns += [{"role": "user", "content": shot.question}, {"role": "assistant", "content": shot.answer}]
    turns.append({"role": "user", "content": question.text()})
    # Some chat templates know no system message.
    turns[0]["content"] = f"{INSTRUCTIONS}\n\n{turns[0]['content']}"
    return turns


def completion(question: Asked, shots: list[Shot]) -> str:
    """Write the text that a model without a chat template completes with its answer."""
    blocks = [INSTRUCTIONS, *(f"Q: {shot.question}\nA: {shot.answer}" for shot in shots), f"Q: {question.text()}\nA:"]
    return "\n\n".join(blocks)
