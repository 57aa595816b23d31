"""What the fuzzers draw: odd texts, odd values, and damage to files. All of it follows from a seed."""

import copy
import json
import os
import random
import signal
from contextlib import contextmanager

import numpy as np
import torch

# How many times as many cases as in the test suite.
TIMES = int(os.environ.get("FUZZ_TIMES", "1"))
# A case that takes longer hangs.
SECONDS = 120

TEXTS = (
    "A man walks his dog in the park.", "The couple take a train.", "a", "yes", "no no no", "She sings. He paints.",
    "", " ", "\t\n", "\0", "\x1b[31m", "\u202e", "\u2028", "\ufeff", "é" * 40, "我喜欢", "مرحبا", "😀" * 9,
    "x" + "\u0308" * 60, "<b>x</b>", "{{7*7}}", "%s%n", "1" * 200, "a.\nb.\n" * 9, ". " * 40, "NaN", "null", "[1",
    "# Title\n\n- a list\n\n```\ncode\n```", "a" * 3000, "http://x.y/z?q=1", "it's \"it\"", "-" * 70,
)  # fmt: skip


class Shy:
    """A value that cannot be printed."""

    def __repr__(self):
        raise RuntimeError("shy")


def odd_values():
    """Values that no setting expects; made anew, because some can be changed."""
    return [
        None, True, False, -1, 0, 1, 2, 3.5, -0.0, 1e-310, 1e308, 2**31, 2**40, 2**63, 2**70, 10**400, -(10**400),
        10**5000, float("nan"), float("inf"), -float("inf"), 1j, "", " ", "x", "inf", "\ud800", "a" * 5000, b"x", [],
        (), {}, set(), [[]], [None], ["a"], [1, [2]], [0.5] * 3, [[0.5], [0.5, 0.5]], {"a": 1}, {"a": [1.0]}, Shy(),
        object(), lambda *_: None, lambda *_: [[1.0]], range(3), np.nan, np.bool_(True), np.float16(0.5), np.int64(3),
        np.array(2), np.array([]), np.zeros((2, 3)), np.array([[1, "a"]], dtype=object),
        np.ma.masked_less([[1.0, -1.0]] * 3, 0),
        np.ones((2, 2, 2)), np.array([1 + 1j]), torch.ones(3, 2, requires_grad=True),
        torch.tensor(0.5), torch.ones(2, dtype=torch.bfloat16), np.datetime64("2020-01-01"), "../nowhere", "./nowhere",
    ]  # fmt: skip


ODD_JSON = (
    None, True, -1, 0, 3, 2.5, 1e308, 2**70, 10**400, "", "x", "\ud800", "y" * 500, [], {}, [[]], ["a"], [None],
    {"a": 1},
)  # fmt: skip
TOKENS = (
    *(b"\xff", b"\0", b"\r", b"\n", b"\r\n", b'"', b"'", b"[", b"]", b"{", b"}", b",", b":", b"\t", b"\xef\xbb\xbf"),
    *(b"null", b"NaN", b"1e999", b"9" * 5000, b"\\ud800", b"\xe2\x80\xa8", b"[" * 50_000, b"\n" * 9, b"-" * 99, b"PK"),
)


def damage_json(draw, value):
    """Replace, remove or add a value somewhere within a JSON value."""
    value = copy.deepcopy(value)
    node = value
    path = []
    while isinstance(node, (dict, list)) and node and (not path or draw.random() < 0.7):
        key = draw.choice(list(node) if isinstance(node, dict) else range(len(node)))
        path.append((node, key))
        node = node[key]
    if not path or draw.random() < 0.05:
        return draw.choice(ODD_JSON)
    parent, key = path[-1]
    kind = draw.random()
    if kind < 0.6:
        parent[key] = draw.choice(ODD_JSON)
    elif kind < 0.8:
        del parent[key]
    elif isinstance(parent, dict):
        parent[draw.choice(("a", "", "id", "src", "answers", "\ud800"))] = draw.choice(ODD_JSON)
    else:
        parent.append(draw.choice(ODD_JSON))
    return value


def damage_bytes(draw, data):
    """Cut, repeat, move or replace some bytes, or put odd ones between them."""
    for _ in range(draw.choice((1, 1, 2, 4))):
        i, j = sorted(draw.randrange(len(data) + 1) for _ in range(2))
        kind = draw.randrange(6)
        if kind == 0:
            data = data[:i]
        elif kind == 1:
            data = data[:i] + data[min(j, i + 40) :]
        elif kind == 2:
            data = data[:j] + data[i:j][:200] + data[j:]
        elif kind == 3:
            data = data[:i] + bytes([draw.randrange(256)]) + data[i + 1 :]
        else:
            data = data[:i] + draw.choice(TOKENS) + data[i:]
    return data


def damage_lines(draw, values):
    """Write values as JSON lines, and damage a value or the bytes; sometimes neither."""
    values = list(values)
    kind = draw.random()
    if kind < 0.6:
        i = draw.randrange(len(values))
        values[i] = damage_json(draw, values[i])
    data = "".join(json.dumps(value) + "\n" for value in values).encode()
    return damage_bytes(draw, data) if 0.5 < kind < 0.95 else data


def cases(name, n):
    """Yield random generators, one for each case of a fuzzer: a case can be drawn again by its number alone."""
    for i in range(n * TIMES):
        yield i, random.Random(f"{name} {i}")


@contextmanager
def bounded(case):
    """Fail if a case hangs."""

    def stop(*_):
        raise AssertionError(f"{case} took more than {SECONDS} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
