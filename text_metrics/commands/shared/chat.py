"""Answers of a chat model by OpenAI's protocol: each is saved to a file when it arrives, and never requested again."""

import argparse
import fcntl
import hashlib
import json
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, Self

from tqdm import tqdm

from text_metrics.commands.shared.files import named_writing


class Request(NamedTuple):
    """A request for one answer.

    name : what errors call it
    parse : reads the answer; raises ValueError if it cannot. With `top`, it takes a second argument: the
        log-probabilities of the most probable first tokens, or None if the endpoint gives none
    sample : distinguishes requests with equal messages
    top : how many of the most probable first tokens to request
    """

    name: str
    messages: list[dict[str, str]]
    parse: Callable[..., Any]
    sample: int = 0
    top: int = 0


def few_shot(
    instructions: str, examples: Iterable[tuple[str, str]], question: str, system: bool = False
) -> list[dict[str, str]]:
    """Write messages: instructions (in the first message, unless `system`), examples with answers, and a question."""
    turns = [
        {"role": role, "content": content}
        for example in examples
        for role, content in zip(("user", "assistant"), example, strict=True)
    ]
    turns.append({"role": "user", "content": question})
    if system:
        return [{"role": "system", "content": instructions}, *turns]
    # Some chat templates know no system message.
    turns[0]["content"] = f"{instructions}\n\n{turns[0]['content']}"
    return turns


def json_values(answer: str, opening: str) -> Iterator[Any]:
    """Yield the JSON objects (`opening` is "{") or lists ("[") in an answer; the text around them is ignored.

    An object that has a key twice, or a string that UTF-8 cannot encode, is not valid.
    """
    decoder = json.JSONDecoder(object_pairs_hook=_to_dict)
    start = answer.find(opening)
    while start >= 0:
        try:
            value, _ = decoder.raw_decode(answer, start)
            json.dumps(value, ensure_ascii=False).encode()
            yield value
        except ValueError:
            pass
        except RecursionError:
            return
        start = answer.find(opening, start + 1)


def _to_dict(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key is repeated")
    return dict(pairs)


def journal_file(output: Path) -> Path:
    """Return the journal of the answers that an output is made of."""
    return output.with_name(f"{output.name}.journal")


class Journal:
    """Answers by the digest of their request, in a file that grows by a line for each and survives any kill."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.answers: dict[str, list[dict[str, Any]]] = {}
        self._guard = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a+b", buffering=0)
        try:
            # Two runs at once would pay for the same answers. The system releases the lock when a process dies.
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._read()
        except BlockingIOError:
            raise ValueError(f"{path} is in use by another run.") from None

    def _read(self) -> None:
        data = self.path.read_bytes()
        complete = data.rfind(b"\n") + 1
        for number, line in enumerate(data[:complete].splitlines(), 1):
            try:
                record = json.loads(line)
                if not isinstance(record["answer"], str | None) or not isinstance(sum(record["tokens"]), int):
                    raise TypeError("it must have 'answer', a string, and 'tokens', two integers")
                self.answers.setdefault(record["key"], []).append(record)
            except (ValueError, TypeError, KeyError, RecursionError) as error:
                raise ValueError(f"{self.path}, line {number} is not an answer of an earlier run: {error}.") from None
        # A run was killed while it wrote the rest.
        self._file.truncate(complete)

    def add(self, record: dict[str, Any]) -> None:
        """Append an answer, and write it to disk before returning; after an OSError, the file has no part of it."""
        # ASCII, because UTF-8 cannot encode the unpaired surrogates of some answers.
        line = json.dumps(record).encode() + b"\n"
        with self._guard, named_writing(self.path):
            end = os.fstat(self._file.fileno()).st_size
            try:
                while line:
                    line = line[self._file.write(line) :]
                os.fsync(self._file.fileno())
            except OSError:
                self._file.truncate(end)
                raise
            self.answers.setdefault(record["key"], []).append(record)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def add_arguments(parser: argparse.ArgumentParser, model: str = "name of the chat model") -> None:
    """Add the settings of an endpoint to a command, with the help of --model."""
    parser.add_argument("--model", required=True, help=model)
    parser.add_argument("--base-url", help="of the endpoint; OpenAI's by default, or $OPENAI_BASE_URL")
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--workers", type=int, default=8, help="number of concurrent requests")
    parser.add_argument("--attempts", type=int, default=4, help="requests for an answer that can be parsed")
    parser.add_argument("--retries", type=int, default=6, help="after a rate limit, a server error, a lost connection")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds for one request")


class Chat:
    """A chat model with the journal of an output, which is locked until the end of a `with`.

    Parameters
    ----------
    arguments : those of `add_arguments`
    output : the file that the answers are made into
    """

    def __init__(self, arguments: argparse.Namespace, output: Path) -> None:
        import openai

        for name in ("workers", "attempts"):
            if getattr(arguments, name) < 1:
                raise ValueError(f"--{name} must be at least 1. Got {getattr(arguments, name)}.")
        url = arguments.base_url or os.environ.get("OPENAI_BASE_URL")
        self._key = os.environ.get("OPENAI_API_KEY", "").strip()
        if not self._key and not url:
            raise ValueError("No API key: set OPENAI_API_KEY, or pass the --base-url of an endpoint that needs none.")
        if not (self._key.isascii() and self._key.isprintable()):
            raise ValueError("OPENAI_API_KEY must be printable ASCII. It has other characters.")
        limits = {"timeout": arguments.timeout, "max_retries": max(arguments.retries, 0)}
        self._client = openai.OpenAI(api_key=self._key or "none", base_url=url, **limits)
        self._settings = arguments
        self._journal = Journal(journal_file(output))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._journal.__exit__()

    def ask(self, requests: list[Request]) -> tuple[list[Any], int]:
        """Get an answer to each request, from the journal or from the endpoint, concurrently.

        Returns the parsed answers, None for a missing one, and the exit code, 1 if any is missing. What is missing, and
        why, is printed. Answers received before the endpoint fails, or before an interruption, stay in the journal.
        """
        keys = [self._digest(request) for request in requests]
        by_key = dict(zip(keys, requests, strict=True))
        known = {key: len(self._journal.answers.get(key, ())) for key in by_key}
        self._stopped, self._rejected = "", dict[str, str]()
        # At its end, the pool waits for the requests in flight: they are paid for.
        with ThreadPoolExecutor(self._settings.workers) as pool:
            done = pool.map(self._ask_one, by_key.values(), by_key)
            try:
                for _ in tqdm(done, total=len(by_key), unit="answer", file=sys.stderr):
                    pass
            except KeyboardInterrupt:
                self._stopped = "Interrupted."
        values = {}
        for key, request in by_key.items():
            values[key], problem = self._read(request, key)
            if problem:
                print(f"{request.name}: {problem}", file=sys.stderr)
        records = [record for key in by_key for record in self._journal.answers.get(key, ())]
        prompt, answer = (sum(record["tokens"][i] for record in records) for i in range(2))
        new = len(records) - sum(known.values())
        print(f"{prompt} + {answer} tokens in all; {new} answers are new in this run.", file=sys.stderr)
        answers = [values[key] for key in keys]
        if self._stopped:
            print(
                f"{self._stopped}\nStopped with {answers.count(None)} of {len(answers)} answers missing. Received "
                f"answers are saved in {self._journal.path}: run the same command to continue.",
                file=sys.stderr,
            )
        return answers, int(None in answers)

    def _digest(self, request: Request) -> str:
        """Digest all that decides the answer to a request."""
        decisive = [self._settings.model, self._settings.temperature, request.messages, request.sample]
        decisive += [request.top] if request.top else []
        return hashlib.sha256(json.dumps(decisive, ensure_ascii=False).encode()).hexdigest()[:32]

    def _read(self, request: Request, key: str) -> tuple[Any, str]:
        """Parse the first answer in the journal that can be: its value, or None; and what is wrong if no more come."""
        records = self._journal.answers.get(key, [])[: self._settings.attempts]
        problem = self._rejected.get(key, "")
        for record in records:
            answer, top = record["answer"], [record.get("top")] if request.top else []
            try:
                if answer is None:
                    raise ValueError("the answer is empty")
                return request.parse(answer, *top), ""
            except ValueError as error:
                if len(records) == self._settings.attempts:
                    problem = f"none of {len(records)} answers can be parsed: {error}. Got {answer!r:.200}."
        return None, problem

    def _ask_one(self, request: Request, key: str) -> None:
        """Request answers until one can be parsed; an error after which none can be sent, or saved, stops all."""
        import openai

        while self._read(request, key) == (None, "") and not self._stopped:
            attempt = len(self._journal.answers.get(key, ()))
            try:
                self._journal.add({"key": key, **self._request(request, f"{key}-{attempt}")})
            except (openai.BadRequestError, openai.UnprocessableEntityError, openai.ConflictError) as error:
                # A retry would fail in the same way; other requests may succeed.
                self._rejected[key] = f"the endpoint rejected the request: {self._without_key(error)}"
            except openai.APIError as error:
                cause = f" ({error.__cause__})" if error.__cause__ else ""
                url = self._client.base_url.copy_with(userinfo=b"")
                self._stopped = self._without_key(f"{url} does not answer: {error}{cause}")
            except OSError as error:
                self._stopped = str(error)
                raise

    def _request(self, request: Request, identity: str) -> dict[str, Any]:
        import openai

        options: dict[str, Any] = {"logprobs": True, "top_logprobs": request.top} if request.top else {}
        try:
            response = self._client.chat.completions.with_raw_response.create(
                model=self._settings.model,
                messages=request.messages,  # type: ignore[arg-type]
                temperature=self._settings.temperature,
                # An endpoint that knows this header does not charge twice for one identity.
                extra_headers={"Idempotency-Key": identity},
                **options,
            )
        except (openai.BadRequestError, openai.UnprocessableEntityError):
            if not request.top:
                raise
            # Some endpoints reject requests for log-probabilities. Another body needs another identity.
            return self._request(request._replace(top=0), f"{identity}-plain")
        return _read_reply(response.content)

    def _without_key(self, message: object) -> str:
        return str(message).replace(self._key or "\0", "[OPENAI_API_KEY]")


def _read_reply(body: bytes) -> dict[str, Any]:
    """Read an endpoint's reply, which may be anything: the answer, None if it is not in the protocol, and its cost."""
    try:
        reply = json.loads(body)
        choice, usage = reply["choices"][0], reply.get("usage") or {}
        content = (choice.get("logprobs") or {}).get("content") or [{}]
        top = {entry["token"]: min(float(entry["logprob"]), 0.0) for entry in content[0].get("top_logprobs") or ()}
        answer = choice["message"]["content"]
        record = {
            "answer": answer if isinstance(answer, str) else None,
            "tokens": [int(usage.get(name) or 0) for name in ("prompt_tokens", "completion_tokens")],
        }
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return {"answer": None, "tokens": [0, 0]}
    return {**record, "top": top} if top else record
