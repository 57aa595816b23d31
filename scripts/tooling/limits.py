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


def largest(name: str, limits: Any) -> Iterator[tuple[str, list[str]]]:
    """Yield inputs as large as the limits, each with a text for every box."""
    total, n = limits.characters, limits.texts
    for n_letters, (m, k) in itertools.product((1, 2, 5, 12), ((1, 2), (1, 60), (1, n), (3, 60), (4, 50), (50, 4))):
        what = f"{m} × {k} texts of words of {n_letters} letters"
        if name == "probeval":
            # m of the answers are people's.
            answers = lines(n, total, n_letters)
            yield what.replace(f"{m} × {k}", f"{m} + {n - m}"), ["\n".join(answers[:m]), "\n".join(answers[m:])]
        elif name == "gruen":
            # m texts of k sentences.
            sentences = " ".join(f"{line.capitalize()}." for line in lines(k, total // m - 2 * k, n_letters) if line)
            yield what.replace("texts", "sentences"), ["\n\n".join([sentences] * m)]
        else:
            yield what, ["\n\n".join("\n".join(lines(k, total // m - 1, n_letters)) for _ in range(m))]


def measure(name: str) -> str:
    """Return a row of the table."""
    folder = build(name)
    sys.path.insert(0, str(folder))
    space = runpy.run_path(str(folder / "app.py"))["SPACE"]
    choices = [getattr(setting, "choices", [("", setting.value)]) for setting in space.settings.values()]
    runs = []
    for what, texts in largest(name, space.limits):
        for values in itertools.product(*choices):
            settings = dict(zip(space.settings, [value for _, value in values], strict=True))
            start, cpu = time.perf_counter(), time.process_time()
            space.score(space.group(space.rows(*texts)), (), **settings)
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
