"""Rate texts by a language model, for `quality=` of a metric and `--quality-key` of text-metrics report.

A chat model is asked whether a text makes sense. The rating is the expected value of the answer, 1 for Yes and 0 for
No, if the service returns log-probabilities; otherwise the answer itself. After a crash, the same command continues.
With --likelihood, a causal model on this machine rates a text by the geometric mean of the probabilities of its tokens.
docs/quality.md says how accurate ratings are.

Each row keeps its columns, and gets `quality`: a rating, or a list of them where the row has a list of texts; null for
a text without an answer. A row that cannot be read is skipped and written to <out>.bad.jsonl, as by text-metrics score.

    text-metrics rate-quality texts.jsonl --out rated.jsonl --model my-model --base-url http://localhost:8000/v1
    text-metrics rate-quality data.csv --text-key answer --id-key prompt --out rated.csv --model gpt-4o
    text-metrics rate-quality texts.jsonl --out rated.jsonl --likelihood --model HuggingFaceTB/SmolLM2-135M
"""

import math
import re
import sys
from itertools import chain
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from text_metrics import options as cli
from text_metrics.console import EXIT_BAD_ROWS, Parser, command
from text_metrics.core_api import (
    TRANSFORMER,
    Signature,
    find_device,
    find_model,
    quiet_loading,
    signature,
    token_batches,
)
from text_metrics.jobs import kept
from text_metrics.jobs.chat import Chat, Request, few_shot
from text_metrics.texts import REASONING, SPECIAL, strip, to_signature

QUESTION = "Could this happen in the real world, and does it make sense? Answer Yes or No."
VALUES = {"yes": 1.0, "no": 0.0}
# The columns that are added to a row, by asking and by --likelihood.
ASKED = ("quality", "signature")
LIKELIHOOD = ("quality", "log_probability", "signature")
# The most probable tokens to request. Some services allow no more.
_TOP = 5
# The probability of all possible answers below which their probabilities say nothing.
_LEAST_SHARE = 0.5


def read_answer(answer: str, top: dict[str, float] | None) -> tuple[float, bool]:
    """Rate a text by the expected value of the answer to the question.

    Returns the rating, in [0, 1], and whether it follows from probabilities of answers.

    `top` holds log-probabilities of the most probable first tokens; the spellings of an answer are added up.
    If they hold less than half of the probability, or the answer's text says something else than they, the rating is
    the value of the answer itself. Reasoning of the judge is left out of it. Raises a ValueError if the answer does not
    begin with Yes or No.
    """
    answer = strip(answer, (REASONING, SPECIAL))
    shares = dict.fromkeys(VALUES, 0.0)
    for token, log_probability in (top or {}).items():
        # Without the space before the word, which some servers write as Ġ, and its markup.
        word = token.removeprefix("Ġ").strip(" \t\n*_#`'\".,:!▁").casefold()
        if word in shares and not math.isnan(log_probability):
            shares[word] += math.exp(log_probability)
    total = sum(shares.values())
    first = re.search(r"\w+", answer)
    written = "" if first is None else first[0].casefold()
    if total >= _LEAST_SHARE and (not written or shares.get(written) == max(shares.values())):
        return sum(share * VALUES[word] for word, share in shares.items()) / total, True
    if written not in VALUES:
        raise ValueError("it must begin with Yes or No")
    return VALUES[written], False


# By the name of a column, the value of each text that is rated; and how they were rated, a signature.
Ratings = tuple[dict[str, dict[str, float]], str]


def rate_by_asking(texts: list[str], arguments: cli.Options) -> Ratings:
    """Ask a chat model about each text."""
    chat = Chat(**cli.chat_options(arguments))
    # An empty text makes no sense.
    ratings: dict[str, tuple[float, bool]] = {text: (0.0, True) for text in texts if not text}
    nonempty = [text for text in texts if text]
    requests = []
    for text in nonempty:
        messages = few_shot(QUESTION, f"Text:\n{text}")
        requests.append(Request(f"the text {text!r:.60}", messages, read_answer, top=_TOP))
    answers = chat.ask(requests)
    ratings |= {text: answer for text, answer in zip(nonempty, answers, strict=True) if answer is not None}
    if plain := sum(not by_probability for _, by_probability in ratings.values()):
        said = f"{plain} of {len(ratings)} ratings are the answer itself, 1 or 0"
        print(f"{said}: the service gave no log-probabilities.", file=sys.stderr)
    quality = {text: rating for text, (rating, _) in ratings.items()}
    return {"quality": quality}, chat.signature("rate_quality", QUESTION)


def rate_by_likelihood(texts: list[str], arguments: cli.Options) -> Ratings:
    """Rate each text by the geometric mean of the probabilities of its tokens; 0 without tokens.

    Before a text stands the model's token for the beginning of a text, or else for its end. Of a text that is too long,
    the beginning is rated. Raises a ValueError for a model that is not there, or is not causal.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    files = find_model(arguments.model, "--model", TRANSFORMER)
    device = find_device(None)
    with quiet_loading("--model", files.path, "a causal language model"):
        tokenizer = AutoTokenizer.from_pretrained(files.path, local_files_only=True)
        model: Any = AutoModelForCausalLM.from_pretrained(files.path, local_files_only=True, dtype="float32")
    model = model.to(device).eval()
    start = tokenizer.bos_token or tokenizer.eos_token
    if start is None:
        raise ValueError(f"--model must have a token for the beginning or the end of a text. Got {arguments.model!r}.")
    limit = getattr(model.config, "max_position_embeddings", 1024) - 1
    encoded = tokenizer(texts, add_special_tokens=False)["input_ids"]
    if too_long := sum(len(ids) > limit for ids in encoded):
        print(f"{too_long} texts are longer than {limit} tokens: only their beginnings are rated.", file=sys.stderr)
    encoded = [ids[:limit] for ids in encoded]
    lengths = np.array([max(len(ids), 1) for ids in encoded])
    totals = np.zeros(len(texts))
    start_id: Any = tokenizer.convert_tokens_to_ids(start)
    with tqdm(total=len(texts), desc="Rating", unit="text", disable=not sys.stderr.isatty()) as bar:
        for batch in token_batches(lengths, device):
            tokens = [torch.tensor(encoded[i], dtype=torch.long) for i in batch]
            # The loss ignores these labels. Padding is at the end, which a causal model does not read.
            labels = torch.nn.utils.rnn.pad_sequence(tokens, batch_first=True, padding_value=-100)
            ids = torch.nn.functional.pad(labels.masked_fill(labels < 0, start_id), (1, 0), value=start_id)
            with torch.inference_mode():
                logits = model(ids.to(device)).logits[:, :-1].float().transpose(1, 2)
                losses = torch.nn.functional.cross_entropy(logits, labels.to(device), reduction="none")
            totals[batch] = -losses.sum(dim=1).double().cpu().numpy()
            bar.update(len(batch))
    signed = signature("rate_quality", model=files.identity, start=start)
    log_probabilities = dict(zip(texts, totals.tolist(), strict=True))
    quality = {}
    for text, ids in zip(texts, encoded, strict=True):
        quality[text] = math.exp(log_probabilities[text] / len(ids)) if ids else 0.0
    return {"quality": quality, "log_probability": log_probabilities}, signed


@command
def main() -> int:
    """Run the command."""
    parser = Parser(__doc__)
    parser.add_argument("--likelihood", action="store_true", help="by a causal model on this machine; ask nothing")
    cli.add_chat(parser, "texts", "a file of rows with texts, of any form that text-metrics score reads")
    cli.add_rows(parser)
    arguments = parser.parse_args(None, cli.Options())
    kept.check_outputs(arguments, *([arguments.model] if arguments.likelihood else []))
    rows = kept.read(arguments, LIKELIHOOD if arguments.likelihood else ASKED)
    answers = rows.answers()
    texts = list(dict.fromkeys(chain.from_iterable(answers.values())))
    rate = rate_by_likelihood if arguments.likelihood else rate_by_asking
    values, signed = rate(texts, arguments)
    signed = str(Signature.parse(signed).merge(**to_signature(arguments.strip)))
    added = {}
    for row in rows.good:
        columns: dict[str, Any] = {}
        for name, by_text in values.items():
            ratings = [by_text.get(text) for text in answers[row.number]]
            columns[name] = ratings[0] if row.is_text else ratings
        added[row.number] = columns | {"signature": signed}
    kept.write(arguments, rows, added)
    n_rated = len(values["quality"])
    print(f"{arguments.out}: {n_rated} of {len(texts)} different texts are rated.", file=sys.stderr)
    if rows.bad:
        return EXIT_BAD_ROWS
    return int(n_rated < len(texts))
