"""Print the table of docs/demos: the limits of each demo, and the seconds of the slowest input within them.

On an idle machine; the demos are built anew.

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
from text_metrics.commands.shared.command import make_parser

RNG = random.Random(0)


def words(n_characters: int, n_letters: int) -> str:
    """Return random words."""
    n_words = n_characters // (n_letters + 1)
    return " ".join("".join(RNG.choices("etaoinshrdlu", k=n_letters)) for _ in range(n_words))


def lines(n: int, n_characters: int, n_letters: int) -> str:
    """Return lines of random words, with this number of characters in all."""
    return "\n".join(words(n_characters // n - 1, n_letters) for _ in range(n))


def cases(name: str, limits: Any) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield inputs as large as the limits, each with a text for every box."""
    total, n = limits.characters, limits.texts
    for n_letters in (1, 2, 5, 12):
        if name == "gruen":
            for n_texts, n_words in itertools.product((2, n), (3, 10, 1000)):
                text = ". ".join(words(n_words * (n_letters + 1), n_letters).capitalize() for _ in range(200))
                yield f"{n_texts} texts", ("\n\n".join([text[: total // n_texts - 2]] * n_texts),)
        elif name == "probeval":
            for people in (1, n // 2, n - 1):
                boxes = lines(n, total, n_letters).split("\n")
                yield f"{n} answers, {people} of people", ("\n".join(boxes[:people]), "\n".join(boxes[people:]))
        else:
            for n_sets, k in ((1, 2), (1, 60), (1, n), (3, 60), (4, 50), (50, 4)):
                blocks = [lines(k, total // n_sets - 1, n_letters) for _ in range(n_sets)]
                yield f"{n_sets} sets of {k} texts", ("\n\n".join(blocks),)


def measure(name: str) -> str:
    """Return a row of the table."""
    folder = build(name)
    sys.path.insert(0, str(folder))
    space = runpy.run_path(str(folder / "app.py"))["SPACE"]
    choices = [getattr(setting, "choices", [("", setting.value)]) for setting in space.settings.values()]
    seconds = []
    for what, texts in cases(name, space.limits):
        for values in itertools.product(*choices):
            settings = {setting: value for setting, (_, value) in zip(space.settings, values, strict=True)}
            start, cpu = time.perf_counter(), time.process_time()
            space.score(space.group(space.rows(*texts)), (), **settings)
            seconds.append((time.perf_counter() - start, time.process_time() - cpu, what))
    # The first run loads the model.
    wall, cpu, what = max(seconds[1:])
    limits = space.limits
    sizes = f"{limits.texts} | {limits.characters:,} | {limits.text_characters:,}"
    return f"| `{name}` | {sizes} | {wall:.1f} | {cpu:.1f} | {what} |"


def main() -> None:
    """Run the command."""
    parser = make_parser(__doc__)
    parser.add_argument("names", nargs="*", default=space_names(), help=f"of {', '.join(space_names())}")
    print("| demo | texts | characters in total | of a text | seconds | CPU time | slowest input |")
    print("|---|---|---|---|---|---|---|")
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for row in pool.imap(measure, parser.parse_args().names):
            print(row, flush=True)


if __name__ == "__main__":
    main()
