"""Print the table of docs/demos, on an idle machine: the limits of each demo, and its slowest input within them.

python -m scripts.tooling.limits [name ...]
"""

import itertools
import multiprocessing
import random
import runpy
import sys
import time
from collections.abc import Iterator
from typing import Any

from scripts.tooling.build_space import build, space_names

RNG = random.Random(0)


def lines(n: int, n_characters: int, n_letters: int) -> list[str]:
    """Return lines of random words, with this number of characters in all."""
    n_words = (n_characters // n - 1) // (n_letters + 1)
    return [" ".join("".join(RNG.choices("etaoinshrdlu", k=n_letters)) for _ in range(n_words)) for _ in range(n)]


def largest(name: str, limits: Any) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield inputs as large as the limits, each as rows of text and set."""
    total, n = limits.characters, limits.texts
    # Sets and texts of each, or texts and sentences of each, or answers of people and of the model.
    shapes: tuple[tuple[int, int], ...] = ((1, 2), (1, 60), (1, n), (3, 60), (4, 50), (50, 4))
    if name == "probeval":
        shapes = ((1, n - 1), (n // 2, n // 2), (n - 1, 1), (7, 8))
    for n_letters, (m, k) in itertools.product((1, 5, 12), shapes):
        what = f"{m} × {k}, words of {n_letters} letters"
        if name == "probeval":
            answers = lines(m + k, total, n_letters)
            yield what.replace("×", "+"), [(text, "people" if i < m else "model") for i, text in enumerate(answers)]
        elif name == "gruen":
            size = min(total // m, limits.text_characters) - 2 * k
            yield what, [(" ".join(f"{line.capitalize()}." for line in lines(k, size, n_letters)), "")] * m
        else:
            yield what, [(line, f"{i}") for i in range(m) for line in lines(k, total // m - 1, n_letters)]


def measure(name: str) -> str:
    """Return a row of the table."""
    folder = build(name)
    sys.path.insert(0, str(folder))
    app = runpy.run_path(str(folder / "app.py"))
    space = app["SPACE"]
    choices = [getattr(setting, "choices", [("", setting.value)]) for setting in space.settings.values()]
    runs = []
    for what, rows in largest(name, space.limits):
        for values in itertools.product(*choices):
            settings = dict(zip(space.settings, [value for _, value in values], strict=True))
            start, cpu = time.perf_counter(), time.process_time()
            space.score([app["inputs"].Row(*row) for row in rows], **settings)
            runs.append((time.perf_counter() - start, time.process_time() - cpu, what))
    # The first run loads the model.
    seconds, cpu, what = max(runs[1:])
    sizes = f"{space.limits.texts} | {space.limits.characters:,} | {space.limits.text_characters:,}"
    return f"| `{name}` | {sizes} | {seconds:.1f} | {cpu:.1f} | {what} |"


if __name__ == "__main__":
    print("| demo | texts | characters in total | of a text | seconds | CPU time | slowest input |")
    print("|---" * 7 + "|")
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for row in pool.imap(measure, sys.argv[1:] or space_names()):
            print(row, flush=True)
