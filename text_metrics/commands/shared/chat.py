"""Requests to a chat model: each answer is saved to a file when it arrives, and never requested again.

Any endpoint that speaks OpenAI's protocol will do. The client retries after rate limits, server errors and dropped
connections; an answer that cannot be parsed is requested again a few times, and then reported.
"""

import argparse
import hashlib
import json
import os
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from filelock import FileLock, Timeout
from tqdm import tqdm

from text_metrics.commands.shared.files import named_writing

_MILLION = 1_000_000


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


class Outcome(NamedTuple):
    """The outcome of some requests.

    values : the parsed answer to each request; None if there is none
    failures : why answers are missing
    stopped : why the rest was not requested; None if all were
    """

    values: list[Any]
    failures: list[str]
    stopped: str | None


def journal_files(output: Path) -> tuple[Path, Path]:
    """Return the journal of the answers that an output is made of, and its lock."""
    journal = output.with_name(f"{output.name}.journal")
    return journal, _lock_of(journal)


def _lock_of(journal: Path) -> Path:
    return journal.with_name(f"{journal.name}.lock")


class Journal:
    """The answers so far, in a file that grows by a line for each and is safe to kill at any moment."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.answers: dict[str, list[dict[str, Any]]] = {}
        self._guard = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        # Two runs at once would pay for the same answers. The system releases the lock when a process dies.
        self._lock = FileLock(_lock_of(path))
        try:
            self._lock.acquire(blocking=False)
        except Timeout:
            raise ValueError(f"{path} is in use by another run.") from None
        try:
            self._read()
            # Without a buffer, which would be written later, when writing has failed.
            self._file = path.open("ab", buffering=0)
        except BaseException:
            self._lock.release()
            raise

    def _read(self) -> None:
        data = self.path.read_bytes() if self.path.exists() else b""
        whole = data.rfind(b"\n") + 1
        for number, line in enumerate(data[:whole].splitlines(), 1):
            try:
                record = json.loads(line)
                prompt, answer = record["tokens"]
                if not isinstance(record["answer"], str | None) or not isinstance(prompt + answer, int):
                    raise TypeError("it must have 'answer', a string, and 'tokens', two integers")
                self.answers.setdefault(record["key"], []).append(record)
            except (ValueError, TypeError, KeyError, RecursionError) as error:
                raise ValueError(f"{self.path}, line {number} is not an answer of an earlier run: {error}.") from None
        if whole < len(data):
            # A run was killed while it wrote this line.
            with self.path.open("r+b") as file:
                file.truncate(whole)

    def add(self, record: dict[str, Any]) -> None:
        """Append an answer, and write it to disk before returning; after an OSError, the file has no part of it."""
        line = _to_line(record)
        with self._guard, named_writing(self.path):
            end = os.fstat(self._file.fileno()).st_size
            try:
                written = 0
                while written < len(line):
                    written += self._file.write(line[written:])
                os.fsync(self._file.fileno())
            except OSError:
                self._file.truncate(end)
                raise
            self.answers.setdefault(record["key"], []).append(record)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()
        self._lock.release()


def _to_line(record: dict[str, Any]) -> bytes:
    try:
        return json.dumps(record, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:
        # An unpaired surrogate has no UTF-8 encoding, but an escape in JSON.
        return json.dumps(record).encode() + b"\n"


class _EndpointError(Exception):
    """No request can be sent to the endpoint."""


def add_arguments(
    parser: argparse.ArgumentParser, temperature: float = 1.0, model: str = "name of the chat model"
) -> None:
    """Add the settings of an endpoint to a command, with the help of --model."""
    parser.add_argument("--model", required=True, help=model)
    parser.add_argument("--base-url", help="of the endpoint; OpenAI's by default, or $OPENAI_BASE_URL")
    parser.add_argument("--temperature", type=float, default=temperature)
    parser.add_argument("--workers", type=int, default=8, help="number of concurrent requests")
    parser.add_argument(
        "--attempts", type=int, default=4, help="maximum number of requests for an answer that can be parsed"
    )
    parser.add_argument("--retries", type=int, default=6, help="after a rate limit, a server error, a lost connection")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds for one request")
    parser.add_argument(
        "--prices",
        type=float,
        nargs=2,
        metavar=("PROMPT", "ANSWER"),
        help="dollars for a million tokens of each, to show the cost",
    )


class Chat:
    """A chat model with the journal of an output; the journal is locked until the end of a `with`.

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
        base_url = arguments.base_url or os.environ.get("OPENAI_BASE_URL")
        key = os.environ.get("OPENAI_API_KEY") or ("none" if base_url else None)
        if key is None:
            raise ValueError("No API key: set OPENAI_API_KEY, or pass the --base-url of an endpoint that needs none.")
        self._settings = arguments
        self._client = openai.OpenAI(
            api_key=key, base_url=base_url, timeout=arguments.timeout, max_retries=max(arguments.retries, 0)
        )
        self._journal = Journal(journal_files(output)[0])
        # Why no request can be sent any more, once that is known.
        self._broken = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self._journal.__exit__(*error)

    def ask(self, requests: list[Request]) -> Outcome:
        """Get an answer to each request, from the journal or from the endpoint, concurrently.

        Answers received before the endpoint fails, or before an interruption, stay in the journal.
        """
        keys = [self._key(request) for request in requests]
        by_key = dict(zip(keys, requests, strict=True))
        before = {key: len(self._journal.answers.get(key, ())) for key in by_key}
        values: dict[str, Any] = {}
        failures: list[str] = []
        self._broken, stopped = "", None
        pool = ThreadPoolExecutor(self._settings.workers)
        with tqdm(total=len(by_key), unit="answer", file=sys.stderr) as bar:
            tokens = self._tokens(by_key)
            waiting = {pool.submit(self._answer, request, key): key for key, request in by_key.items()}
            try:
                for future in as_completed(waiting):
                    key = waiting[future]
                    try:
                        values[key] = future.result()
                    except ValueError as error:
                        failures.append(f"{by_key[key].name}: {error}")
                    tokens += self._tokens([key], before[key])
                    bar.set_postfix_str(self._cost(tokens), refresh=False)
                    bar.update()
            except (_EndpointError, KeyboardInterrupt) as error:
                self._broken = stopped = str(error) or "Interrupted."
            except OSError as error:
                # No answer is requested that cannot be saved.
                self._broken = str(error)
                raise
            finally:
                # Requests in flight are paid for, so their answers are awaited and kept.
                pool.shutdown(cancel_futures=True)
        for future, key in waiting.items():
            if key not in values and not future.cancelled() and future.exception() is None:
                values[key] = future.result()
        new = sum(len(self._journal.answers.get(key, ())) - before[key] for key in by_key)
        print(f"{self._cost(self._tokens(by_key))} in all; {new} answers are new in this run.", file=sys.stderr)
        return Outcome([values.get(key) for key in keys], failures, stopped)

    def report(self, outcome: Outcome) -> int:
        """Print which answers are missing; returns the exit code."""
        for failure in outcome.failures:
            print(failure, file=sys.stderr)
        if outcome.stopped:
            missing = sum(value is None for value in outcome.values)
            print(
                f"{outcome.stopped}\nStopped with {missing} of {len(outcome.values)} answers missing. Received answers "
                f"are saved in {self._journal.path}: run the same command to continue.",
                file=sys.stderr,
            )
        return 1 if outcome.failures or outcome.stopped else 0

    def _key(self, request: Request) -> str:
        """Name a request by all that decides its answer."""
        decisive = [self._settings.model, self._settings.temperature, request.messages, request.sample]
        decisive += [request.top] if request.top else []
        return hashlib.sha256(json.dumps(decisive, ensure_ascii=False).encode()).hexdigest()[:32]

    def _answer(self, request: Request, key: str) -> Any:
        """Get one answer that can be parsed; raises a ValueError if there is none after all attempts."""
        problem = ""
        for attempt in range(self._settings.attempts):
            known = self._journal.answers.get(key, [])
            if attempt == len(known):
                if self._broken:
                    raise _EndpointError(self._broken)
                try:
                    record = self._call(request, f"{key}-{attempt}")
                except _EndpointError as error:
                    self._broken = self._broken or str(error)
                    raise
                self._journal.add({"key": key, **record})
                known = self._journal.answers[key]
            answer = known[attempt]["answer"]
            try:
                if answer is None:
                    raise ValueError("the answer is empty")
                return request.parse(answer, known[attempt].get("top")) if request.top else request.parse(answer)
            except ValueError as error:
                problem = f"{error}. Got {answer!r:.200}."
        raise ValueError(f"none of {self._settings.attempts} answers can be parsed: {problem}")

    def _call(self, request: Request, identity: str) -> dict[str, Any]:
        import openai

        options: dict[str, Any] = {"logprobs": True, "top_logprobs": request.top} if request.top else {}
        try:
            # An endpoint that knows this header does not charge twice for one identity.
            completion = self._client.chat.completions.create(
                model=self._settings.model,
                messages=request.messages,  # type: ignore[arg-type]
                temperature=self._settings.temperature,
                extra_headers={"Idempotency-Key": identity},
                **options,
            )
        except (openai.BadRequestError, openai.UnprocessableEntityError, openai.ConflictError) as error:
            if request.top and not isinstance(error, openai.ConflictError):
                # Some endpoints reject requests for log-probabilities. Another body needs another identity.
                return self._call(request._replace(top=0), f"{identity}-plain")
            # A retry would fail in the same way; other requests may succeed.
            raise ValueError(f"the endpoint rejected the request: {error}") from error
        except (openai.APIResponseValidationError, json.JSONDecodeError):
            # The endpoint answered, and may have charged, but not in the protocol.
            return {"answer": None, "tokens": [0, 0]}
        except openai.APIError as error:
            cause = f" ({error.__cause__})" if error.__cause__ else ""
            raise _EndpointError(f"{self._client.base_url} does not answer: {error}{cause}") from error
        choices = getattr(completion, "choices", None)
        usage = getattr(completion, "usage", None)
        message = getattr(choices[0], "message", None) if choices else None
        top = _read_top(choices[0]) if request.top and choices else None
        return {
            "answer": getattr(message, "content", None),
            "tokens": [getattr(usage, "prompt_tokens", 0) or 0, getattr(usage, "completion_tokens", 0) or 0],
            **({"top": top} if top else {}),
        }

    def _tokens(self, keys: Iterable[str], start: int = 0) -> np.ndarray:
        """Count the tokens of the answers to requests, from some attempt on: those of prompts, and of answers."""
        counts = [record["tokens"] for key in keys for record in self._journal.answers.get(key, ())[start:]]
        return np.array(counts, dtype=np.int64).reshape(-1, 2).sum(axis=0)

    def _cost(self, tokens: np.ndarray) -> str:
        shown, prices = f"{tokens[0]} + {tokens[1]} tokens", self._settings.prices
        return f"{shown}, ${float(tokens @ np.array(prices)) / _MILLION:.4f}" if prices else shown


def _read_top(choice: Any) -> dict[str, float] | None:
    """Read the log-probabilities of the most probable first tokens; None if there are none."""
    content = getattr(getattr(choice, "logprobs", None), "content", None)
    top = getattr(content[0], "top_logprobs", None) if content else None
    try:
        return {str(entry.token): min(float(entry.logprob), 0.0) for entry in top or ()} or None
    except (AttributeError, TypeError, ValueError):
        # The client does not check what an endpoint returns.
        return None
