"""Python programs, and functions, in processes of their own."""

import multiprocessing
import subprocess
import sys

# The way to start processes that are forks of one server, which has imported what they import and done nothing else.
# `evaluate`, with torch, takes 4 s.
FORKS = "forkserver"
multiprocessing.get_context(FORKS).set_forkserver_preload(
    ["evaluate", "sentence_transformers", "tests.test_kills", "tests.trainer_run"]
)


def run(program, *arguments, cwd=None, env=None):
    """Run a program; returns its code and what it printed."""
    words = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True)


def in_fork(function, *arguments, seconds=120):
    """Call a function in a forked process; returns its result, or the error that it raises; fails if it hangs."""

    def call(connection):
        try:
            connection.send(function(*arguments))
        except Exception as error:
            connection.send(error)

    ours, theirs = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=call, args=(theirs,))
    process.start()
    try:
        assert ours.poll(seconds), "the process hangs"
        return ours.recv()
    finally:
        process.kill()
        process.join()
