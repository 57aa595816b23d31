"""Answers of a chat model by OpenAI's protocol: each is saved to a file when it arrives, and never requested again."""

import hashlib
import json
import os
import re
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from tqdm import tqdm

from text_metrics.core_api import parse_count, parse_number, signature
from text_metrics.files.storage import check_outputs, named_writing
from text_metrics.files.written import JOURNAL
from text_metrics.jobs.locks import locked


class Request(NamedTuple):
    """A request for one answer.

    name : its name in errors
    parse : reads the answer, given with the log-probabilities of the most probable first tokens, or None if the
        endpoint gives none; raises a ValueError if it cannot
    sample : distinguishes requests with equal messages
    top : how many of the most probable first tokens to request
    """

    name: str
    messages: list[dict[str, str]]
    parse: Callable[[str, dict[str, float] | None], Any]
    sample: int = 0
    top: int = 0


def few_shot(instructions: str, question: str, *examples: tuple[str, str]) -> list[dict[str, str]]:
    """Write messages: instructions, examples with answers, and a question."""
    turns = []
    for example, answer in examples:
        turns += [{"role": "user", "content": example}, {"role": "assistant", "content": answer}]
    turns.append({"role": "user", "content": question})
    # Some chat templates do not support system messages.
    turns[0]["content"] = f"{instructions}\n\n{turns[0]['content']}"
    return turns


class Journal:
    """Answers by the digest of their request, in an append-only file with a line for each."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.answers: dict[str, dict[str, Any]] = {}
        self._lock = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        with named_writing(path), path.open("ab+") as file:
            file.seek(0)
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    # A run was killed while it wrote this line.
                    file.truncate(file.tell() - len(line))
                    break
                try:
                    record = json.loads(line)
                    self.answers[record["key"]] = {"answer": record["answer"], "top": record.get("top")}
                except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
                    raise ValueError(f"{path}, line {number} is not an answer of an earlier run.") from None

    def add(self, key: str, record: dict[str, Any]) -> None:
        """Write an answer to disk; after an OSError, the file has no part of it."""
        # ASCII, because UTF-8 cannot encode the unpaired surrogates of some answers.
        line = json.dumps({"key": key, **record}).encode() + b"\n"
        with self._lock, named_writing(self.path), self.path.open("ab", buffering=0) as file:
            end = file.tell()
            try:
                while line:
                    line = line[file.write(line) :]
                os.fsync(file.fileno())
            except OSError:
                file.truncate(end)
                raise
        self.answers[key] = record


def journal_of(output: Path) -> Path:
    """Return the file of the answers that an output is made of."""
    return output.with_name(f"{output.name}{JOURNAL}")


class Chat:
    """A chat model, with the journal of the output that its answers make; parameters are the options of `add_chat`.

    Raises a ValueError for settings, an API key or a URL that cannot be used, or an output that is read.
    """

    def __init__(
        self,
        reads: Path,
        out: Path,
        model: str,
        base_url: str | None = None,
        temperature: float = 1.0,
        workers: int = 8,
        attempts: int = 4,
        retries: int = 6,
    ) -> None:
        import openai

        self._output = out
        self._journal_file = journal_of(out)
        check_outputs([reads], [out, self._journal_file])
        self._model = model
        self._workers = parse_count(workers, "--workers")
        self._attempts = parse_count(attempts, "--attempts")
        parse_count(retries, "--retries", 0)
        parse_number(temperature, "--temperature", 0)
        self._temperature = temperature
        url = base_url or os.environ.get("OPENAI_BASE_URL")
        key = os.environ.get("OPENAI_API_KEY", "").strip()
        if not key and not url:
            raise ValueError("No API key: set OPENAI_API_KEY, or pass the --base-url of an endpoint that needs none.")
        if re.search(r"[^!-~]", key):
            raise ValueError("OPENAI_API_KEY must be ASCII without spaces and line breaks: set it again.")
        try:
            self._client = openai.OpenAI(api_key=key or "none", base_url=url, max_retries=retries)
        except Exception:  # It may quote a password.
            raise ValueError("--base-url, or OPENAI_BASE_URL, is not a valid URL.") from None
        endpoint = self._client.base_url
        self.host = endpoint.netloc.decode()
        self._url = f"{endpoint.scheme}://{self.host}{endpoint.raw_path.decode()}"
        self._secrets = [secret for secret in (key, endpoint.userinfo.decode(), endpoint.password) if secret]
        self._stopped = ""

    def signature(self, command: str, instructions: str) -> str:
        """Return the signature of a command's requests, which begin with the instructions."""
        digest = hashlib.sha256(instructions.encode()).hexdigest()[:8]
        decisive = {"service": self._model, "host": self.host, "temperature": self._temperature, "ask": digest}
        return signature(command, **decisive)

    def ask(self, requests: list[Request]) -> list[Any]:
        """Get an answer to each request, from the journal or from the endpoint, concurrently.

        Returns the parsed answers, None for a missing one, whose reason is printed. Raises a ValueError if the endpoint
        fails, no request has an answer, or another process asks for the same output, which would pay again.
        """
        keys = [self._digest(request) for request in requests]
        by_key = dict(zip(keys, requests, strict=True))
        # At its end, the pool waits for the requests in flight: they are paid for.
        with locked(self._journal_file), ThreadPoolExecutor(self._workers) as pool:
            self._journal = Journal(self._journal_file)
            answers = pool.map(self._answer, by_key, by_key.values())
            try:
                values = dict(zip(by_key, tqdm(answers, total=len(by_key), unit="answer"), strict=True))
            except BaseException as error:
                self._stopped = str(error) or "Interrupted."
                raise
        if self._stopped or (requests and all(value is None for value in values.values())):
            raise ValueError(
                f"{self._stopped or 'No request has an answer.'}\n{self._output} is not written. Received answers are "
                f"saved in {self._journal.path}: run the same command to continue."
            )
        return [values[key] for key in keys]

    def _digest(self, request: Request) -> str:
        decisive = [self._url, self._model, self._temperature, request.messages, request.sample]
        decisive += [request.top] if request.top else []
        return hashlib.sha256(json.dumps(decisive, ensure_ascii=False).encode()).hexdigest()[:32]

    def _answer(self, key: str, request: Request) -> Any:
        """Return the parsed answer to a request; None, with a message, if it fails or all requests stop."""
        import openai

        if key in self._journal.answers:
            # An answer that a later version cannot parse is requested again.
            with suppress(ValueError):
                return _parse(request, self._journal.answers[key])
        problem = ""
        for _ in range(self._attempts):
            if self._stopped:
                return None
            try:
                record = self._request(request)
                value = _parse(request, record)
            except ValueError as error:
                problem = f"none of {self._attempts} answers can be parsed: {error}"
                continue
            except (openai.BadRequestError, openai.UnprocessableEntityError, openai.ConflictError) as error:
                # A retry would fail in the same way; other requests may succeed.
                problem = f"the endpoint rejected the request: {error}"
                break
            except Exception as error:  # of the client, or of its HTTP library
                cause = f" ({error.__cause__})" if error.__cause__ else ""
                self._stopped = self._without_secrets(f"{self.host} does not answer: {error}{cause}")
                return None
            self._journal.add(key, record)
            return value
        tqdm.write(self._without_secrets(f"{request.name}: {problem}"), file=sys.stderr)
        return None

    def _without_secrets(self, text: str) -> str:
        for secret in self._secrets:
            for form in (secret, repr(secret)[1:-1], json.dumps(secret)[1:-1]):
                text = text.replace(form, "[secret]")
        return text

    def _request(self, request: Request) -> dict[str, Any]:
        """Request an answer: its text, if there is one, and log-probabilities of first tokens."""
        import openai

        options: dict[str, Any] = {"logprobs": True, "top_logprobs": request.top} if request.top else {}
        try:
            response: Any = self._client.chat.completions.create(
                model=self._model,
                messages=request.messages,  # type: ignore[arg-type]
                temperature=self._temperature,
                **options,
            )
        except (openai.BadRequestError, openai.UnprocessableEntityError):
            if not request.top:
                raise
            # Some endpoints reject requests for log-probabilities.
            return self._request(request._replace(top=0))
        record: dict[str, Any] = {"answer": None}
        # Endpoints may leave out any part.
        with suppress(AttributeError, LookupError, TypeError):
            choice = response.choices[0]
            record["answer"] = choice.message.content
            entries = choice.logprobs.content[0].top_logprobs
            record["top"] = {entry.token: min(entry.logprob, 0.0) for entry in entries}
        return record


def _parse(request: Request, record: dict[str, Any]) -> Any:
    """Read an answer; raises a ValueError that quotes it."""
    answer = record["answer"]
    if not isinstance(answer, str):
        raise ValueError("the reply has no text")
    try:
        value = request.parse(answer, record.get("top"))
        # No file can hold an unpaired surrogate.
        json.dumps([answer, value], ensure_ascii=False).encode()
        return value
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{error}. Got {answer!r:.200}.") from None
