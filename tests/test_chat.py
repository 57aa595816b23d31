"""The chat protocol, against a real server with faults, and the journal that makes asking resumable."""

import itertools
import multiprocessing
import re
import socket
import time
from argparse import ArgumentParser

import pytest

from tests.chat_server import serve
from tests.commands import run_command
from tests.files import read_jsonl, small_files, write_jsonl
from text_metrics import __main__ as cli
from text_metrics.console import EXIT_IN_USE
from text_metrics.jobs.chat import Chat, Journal, Request, few_shot
from text_metrics.options import add_chat, chat_options


def requests(*texts, sample=0):
    return [Request(f"request {text}", few_shot("Say", text), lambda answer, _: int(answer), sample) for text in texts]


NINE = requests(*map(str, range(9)))


@pytest.fixture
def ask(tmp_path, capsys):
    """Ask a chat model, and return its answers, whether one is missing, and what was printed."""

    def ask_once(url, requested, *options):
        parser = ArgumentParser()
        add_chat(parser, "file", "a file")
        words = ["file", "--out", tmp_path / "out.jsonl", "--model", "m", "--base-url", url, *options]
        answers = Chat(**chat_options(parser.parse_args(list(map(str, words))))).ask(requested)
        return answers, int(None in answers), capsys.readouterr().err

    return ask_once


def echo(question, _number=0):
    """Answer with the number in the question."""
    return question.rpartition("\n")[2]


def test_what_was_answered_is_never_requested_again(ask):
    with serve(echo) as server:
        values, code, shown = ask(server.url, [*NINE, NINE[3]])
        assert (values, code) == ([*range(9), 3], 0)
        assert len(server.paid) == 9, shown
        body = server.requests[0][0]
        assert (body["model"], body["temperature"]) == ("m", 1.0)
        # Whatever decides the answer makes another request, and nothing else does.
        for n_new, requested, options in [
            (0, NINE[::-1], ("--attempts", 2, "--workers", 1, "--retries", 0)),
            (9, NINE, ("--temperature", 0.5)),
            (9, NINE, ("--model", "other")),
            (2, NINE + requests("1", "2", sample=1), ()),
            (1, requests("9", "8"), ()),
            (1, [NINE[0]._replace(top=5)], ()),
        ]:
            before = len(server.requests)
            assert ask(server.url, requested, *options)[1] == 0
            assert len(server.requests) == before + n_new


def test_faults_that_pass_are_waited_out(ask):
    faults = iter([429, None, 500, "drop", None, 503, None, None, 408, "drop", 500, 429, 429])
    with serve(lambda question, _: next(faults, None) or echo(question)) as server:
        values, code, shown = ask(server.url, NINE, "--workers", 3, "--retries", 20)
        assert (values, code) == ([*range(9)], 0), shown
        assert len(server.requests) == 9 + 9
        assert len(server.paid) == 9


def test_answers_that_cannot_be_parsed_are_requested_anew_and_then_reported(ask):
    broken = itertools.cycle(["garbage", "I cannot.", "nothing", None, "1.5", "\ud83d"])

    def reply(question, number):
        return next(broken) if question.endswith("3") or number == 0 else echo(question)

    with serve(reply) as server:
        values, code, shown = ask(server.url, NINE, "--attempts", 3)
        assert (values, code) == ([0, 1, 2, None, *range(4, 9)], 1)
        assert shown.count("request 3: none of 3 answers can be parsed") == 1
        assert len(server.requests) in (9 + 2, 9 + 3)
        before = len(server.requests)
        # Only what is missing is requested by the next run.
        assert ask(server.url, NINE, "--attempts", 2)[:2] == (values, 1)
        assert len(server.requests) == before + 2
        server.reply = echo
        assert ask(server.url, NINE)[:2] == ([*range(9)], 0)
        assert len(server.requests) == before + 3


@pytest.mark.parametrize("status", [400, 409, 422])
def test_a_request_that_the_endpoint_rejects_does_not_stop_the_others(ask, status):
    with serve(lambda question, _: status if question.endswith("3") else echo(question)) as server:
        values, code, shown = ask(server.url, NINE, "--retries", 0)
    assert (values, code) == ([0, 1, 2, None, *range(4, 9)], 1)
    assert "request 3: the endpoint rejected the request" in shown


@pytest.mark.parametrize(("status", "retries"), [(401, 6), (404, 6), (500, 1)])
def test_an_endpoint_that_fails_stops_the_run_and_what_came_is_kept(ask, status, retries):
    with serve(lambda question, number: echo(question) if number < 4 else status) as server:
        place = f"127.0.0.1:{server.server_port}"
        with pytest.raises(ValueError, match=f"{place} does not answer: .*fault {status}"):
            ask(server.url, NINE, "--workers", 1, "--retries", retries)
        assert len(server.requests) == (6 if status == 500 else 5)
        server.reply = echo
        assert ask(server.url, NINE)[:2] == ([*range(9)], 0)
        assert len(server.paid) == 9


def test_an_endpoint_that_is_down_is_named_without_its_password(ask):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(ValueError, match=f"{place} does not answer.*refused") as raised:
        ask(f"http://user:secret@{place}/v1", NINE, "--retries", 0)
    assert "secret" not in str(raised.value)


DEAD = "http://127.0.0.1:9/v1"
KEYS = ("", "sk-secret\nb", "sk-secret\r\nb", "sk-secret b", "sk-secret\x07", "sk-secretï")
OPTIONS = (("--attempts", 0), ("--workers", 0), ("--retries", -1), ("--temperature", -1), ("--temperature", "nan"))


@pytest.mark.parametrize(
    ("name", "key", "url", "options"),
    [
        *(("OPENAI_API_KEY", key, "", ()) for key in KEYS),
        *(("--base-url", "", url, ()) for url in ("http://user:pa/secret@host/v1", "http://user:secret@host:port/v1")),
        *((option[0], "k", DEAD, option) for option in OPTIONS),
    ],
)
def test_what_cannot_be_asked_with_is_named_and_not_shown(ask, monkeypatch, name, key, url, options):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(ValueError, match=name) as raised:
        ask(url, NINE, *options)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("place", ["faults of one request", "faults that stop the run", "errors of the client"])
def test_no_message_shows_the_key(ask, monkeypatch, capsys, place):
    """Some endpoints quote the request in their errors, with the key as it is or escaped."""
    key = "sk-'\\\"secret"
    monkeypatch.setenv("OPENAI_API_KEY", f" {key}\n")
    reply = {"faults of one request": 400, "faults that stop the run": 401}.get(place, "1")
    if place == "errors of the client":
        # The headers of the client hold a line break.
        monkeypatch.setenv("OPENAI_ORG_ID", f"org\n{key}")
    with serve(lambda *_: reply) as server:
        server.fault = f"{key}, {key!r}, {key.encode()!r}"
        with pytest.raises(ValueError, match="not written") as raised:
            ask(server.url, NINE[:2], "--retries", 0)
    shown = f"{raised.value}{capsys.readouterr().err}"
    assert "[secret]" in shown
    assert "secret" not in shown.replace("[secret]", "")


# An input of each command, the answer of the model, and how many requests there are.
COMMANDS = {
    "probe ask --samples 2": ('{"id": "q", "question": "Who?"}', "a dog", 2),
    "rate-quality": ('"a text"', "Yes", 1),
    "cluster-answers": ('{"id": "q", "answers": ["a", "b"]}', '{"1": "a", "2": "b"}', 1),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_pay_once_and_keep_an_output_without_any_answer(monkeypatch, tmp_path, capsys, command):
    given = tmp_path / "given.jsonl"
    out = tmp_path / "out.jsonl"
    line, answer, n_requests = COMMANDS[command]
    given.write_text(f"{line}\n", encoding="utf-8")
    out.write_text("of an earlier run\n", encoding="utf-8")
    ends = []

    def reply(_question, number):
        # A second command is refused, as by score, while the first one asks.
        if number == 0:
            ends.append((run_command(monkeypatch, *words), capsys.readouterr().err))
        return answer

    with serve(lambda *_: 400) as server:
        words = [*command.split(), given, "--out", out, "--model", "m", "--workers", 1, "--base-url", server.url]
        for status in (401, 400):
            server.reply = lambda *_, status=status: status
            assert run_command(monkeypatch, *words) == 2
            assert f"{out} is not written" in capsys.readouterr().err
            assert out.read_text(encoding="utf-8") == "of an earlier run\n"
        server.requests.clear()
        server.reply = reply
        # The lock ends with the command, and the next one pays for nothing.
        for _ in range(2):
            assert run_command(monkeypatch, *words) == 0
            assert len(server.requests) == n_requests
    ((code, shown),) = ends
    assert (code, f"{out}.journal is in use by another process" in shown) == (EXIT_IN_USE, True)


# The journal.


def test_answers_are_those_of_the_server_that_is_asked(ask):
    with serve(echo) as first, serve(lambda *_: "77") as second:
        assert ask(first.url, NINE[:2])[0] == [0, 1]
        assert ask(second.url, NINE[:2])[0] == [77, 77]
        # A password, or a / at the end, makes no other server.
        assert ask(f"{first.url.replace('//', '//user:password@')}/", NINE[:2])[0] == [0, 1]
        assert (len(first.requests), len(second.requests)) == (2, 2)


@pytest.mark.slow
def test_killed_at_any_moment_asking_goes_on_and_pays_for_nothing_twice(tmp_path):
    questions = write_jsonl(tmp_path / "q.jsonl", [{"id": i, "question": f"{i}?"} for i in range(3)])
    out = tmp_path / "out.jsonl"
    journal = tmp_path / "out.jsonl.journal"
    workers = 2
    with serve(lambda question, number: time.sleep(0.05) or f"answer {number}") as server:
        words = ["probe", "ask", questions, "--out", out, "--model", "m", "--base-url", server.url]
        words = list(map(str, [*words, "--workers", workers, "--samples", 10]))
        retained: dict[str, str] = {}
        for answers in (5, 14):
            running = multiprocessing.get_context("fork").Process(target=cli.main, args=(words,))
            running.start()
            deadline = time.monotonic() + 60
            while not journal.exists() or journal.read_bytes().count(b"\n") < answers:
                assert time.monotonic() < deadline
                time.sleep(0.02)
            running.kill()
            running.join()
            before = {record["key"]: record["answer"] for record in read_jsonl(journal)}
            assert retained.items() <= before.items()
            retained = before
        # Killed in the middle of a line.
        with journal.open("ab") as file:
            file.write(b'{"key": "0123", "answ')
        requested = len(server.requests)
        assert cli.main(words) == 0
        # Only what was in flight at a kill, and never reached the disk, is requested again; the cut line is gone.
        assert len(server.requests) - requested == 30 - len(retained)
        assert cli.main(words) == 0
        assert len(server.requests) - requested == 30 - len(retained)
        assert len(server.requests) <= 30 + 2 * workers
    raw = [answer for line in read_jsonl(out) for answer in line["raw"]]
    assert len(raw) == 30
    assert set(retained.values()) <= set(raw)


def test_a_full_disk_stops_the_run_and_leaves_no_part_of_an_answer(ask, tmp_path):
    path = tmp_path / "out.jsonl.journal"
    with serve(echo) as server:
        with small_files(250), pytest.raises(OSError, match="File too large") as raised:
            ask(server.url, NINE, "--workers", 1)
        assert raised.value.filename == str(path)
        retained = len(read_jsonl(path))
        assert 0 < retained < len(server.requests) < 9
        assert ask(server.url, NINE)[:2] == ([*range(9)], 0)


def test_a_file_that_is_no_journal_is_named_and_kept(tmp_path):
    path = tmp_path / "a.journal"
    record = '{"key": "k", "answer": "x"}'
    for line in ("not mine", "[]", '{"key": "k"}', '{"key": [], "answer": "x"}'):
        path.write_text(f"{record}\n{line}\n", encoding="utf-8")
        with pytest.raises(ValueError, match=f"{re.escape(str(path))}, line 2"):
            Journal(path)
        assert path.read_text(encoding="utf-8").endswith(f"{line}\n")


# What is sent, and what is read.


def test_few_shot_messages():
    turns = few_shot("Say", "e", ("a", "b"), ("c", "d"))
    assert [turn["role"] for turn in turns] == ["user", "assistant", "user", "assistant", "user"]
    assert [turn["content"] for turn in turns] == ["Say\n\na", "b", "c", "d", "e"]
