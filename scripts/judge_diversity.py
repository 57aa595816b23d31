"""Have a chat model judge which of two sets of texts is the more diverse, as arXiv 2506.00514 does.

Both sets of a pair are rated from 1 to 5, several times over, with either of them first, and the ratings averaged. What
is written is the input of scripts/meta_eval.py.

    python scripts/judge_diversity.py pairs.jsonl judged.jsonl --model gpt-4o --prices 2.5 10
    python scripts/judge_diversity.py pairs.jsonl judged.jsonl --model my-model --base-url http://localhost:8000/v1

A pair is a JSON object on a line of its own: `set1` and `set2`, lists of texts, and `src`, what they are about, if
anything. scripts/candidate_sets.py writes such files. Each answer is kept in judged.jsonl.journal as it comes: after a
crash, the same command goes on, and asks for none of them again.
"""

import argparse
import itertools
import json
import re
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from scripts._chat import Journal, Request, add_arguments, ask_all, open_endpoint, report  # noqa: E402
from scripts._files import read_objects, read_texts, read_topic, write_jsonl  # noqa: E402

SAMPLES = 5
VAGUE = 0.5  # scores less than this apart say nothing
LOWEST, HIGHEST = 1, 5

INSTRUCTIONS = """\
You compare two sets of texts and rate how diverse each set is in what it says, from 1 to 5.

5: every text tells of something else: other events, other roles, another point.
4: most texts tell of something else; a few come close to each other.
3: about half of the texts repeat what another one says.
2: nearly all texts say the same; one stands apart.
1: all texts say the same, in whatever words.

Only meaning counts. Other words, another order of words or another style for the same thing add nothing. A text that
cannot be understood says nothing, so it adds nothing either. Do not rate how true, likely or well written a text is.

Answer with one line of JSON and nothing else: {"set1": <rating>, "set2": <rating>}"""

EXAMPLES = [
    (
        "boy, ladder, climb",
        [
            "A boy climbs a ladder to pick apples.",
            "The ladder broke as the boy climbed it.",
            "Firemen teach a boy to climb their ladder.",
            "No boy may climb this ladder, says the sign.",
        ],
        [
            "The boy climbs up the ladder.",
            "A boy is climbing a ladder.",
            "Up the ladder climbs the boy.",
            "A ladder is being climbed by a boy.",
        ],
        (5, 1),
    ),
    (
        "rain, street, umbrella",
        [
            "Rain umbrella the street on opened in a.",
            "A the in umbrella street opened rain on.",
            "Opened street on a rain the in umbrella.",
            "The on street in a opened umbrella rain.",
        ],
        [
            "She opened her umbrella as rain fell on the street.",
            "On the street, she put up an umbrella against the rain.",
            "The umbrella he sold on the street kept out no rain.",
            "It rained, so she walked down the street under an umbrella.",
        ],
        (1, 3),
    ),
]


def ask(topic: str, first: list[str], second: list[str]) -> str:
    """Write the question about two sets."""
    parts = [f"Topic: {topic}"] if topic else []
    for name, texts in (("Set 1", first), ("Set 2", second)):
        parts.append("\n".join([f"{name}:", *(f"- {' '.join(text.split())}" for text in texts)]))
    return "\n\n".join(parts)


def messages(topic: str, first: list[str], second: list[str]) -> list[dict[str, str]]:
    """Write the instructions, the examples with their answers, and the question."""
    found = [{"role": "system", "content": INSTRUCTIONS}]
    for example, one, other, (left, right) in EXAMPLES:
        found.append({"role": "user", "content": ask(example, one, other)})
        found.append({"role": "assistant", "content": json.dumps({"set1": left, "set2": right})})
    return [*found, {"role": "user", "content": ask(topic, first, second)}]


def parse_ratings(answer: str) -> tuple[float, float]:
    """Read both ratings; what a model writes around the JSON does not matter.

    Raises
    ------
    ValueError
        If they are not there, or not between 1 and 5.
    """
    for part in re.findall(r"\{[^{}]*\}", answer):
        try:
            ratings = json.loads(part)
        except ValueError:
            continue
        pair = [ratings.get(key) for key in ("set1", "set2")]
        if all(isinstance(rating, (int, float)) and LOWEST <= rating <= HIGHEST for rating in pair):
            return float(pair[0]), float(pair[1])
    raise ValueError(f'it must hold {{"set1": <rating>, "set2": <rating>}}, both from {LOWEST} to {HIGHEST}')


def verdict(first: float, second: float) -> int:
    """Call the more diverse set, as the paper does: 0 the first, 1 the second, 2 neither."""
    # Means of ratings are rounded: 3.4 - 2.9 is a little less than 0.5.
    return 2 if abs(first - second) < VAGUE - 1e-9 else int(second > first)


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", type=Path, help="pairs of sets, as JSON lines")
    parser.add_argument("judged", type=Path, help="where to write them with their ratings")
    parser.add_argument("--samples", type=int, default=SAMPLES, help="ratings of each pair in each order")
    parser.add_argument("--one-order", action="store_true", help="only set 1 first, at half the cost")
    add_arguments(parser)
    arguments = parser.parse_args()

    try:
        if arguments.samples < 1:
            raise ValueError(f"--samples must be at least 1. Got {arguments.samples}.")
        records, requests = [], []
        # Two pairs with the same sets are rated anew each, not by the same answers.
        repeats: dict[str, itertools.count] = {}
        for where, record in read_objects(arguments.pairs):
            sets = [read_texts(record, key, where) for key in ("set1", "set2")]
            records.append(record)
            for swapped in (False,) if arguments.one_order else (False, True):
                asked = messages(read_topic(record), *(sets[::-1] if swapped else sets))
                numbers = repeats.setdefault(json.dumps(asked), itertools.count())
                requests += [Request(where, asked, parse_ratings, next(numbers)) for _ in range(arguments.samples)]
        endpoint = open_endpoint(arguments)
        path = arguments.judged.with_name(f"{arguments.judged.name}.journal")
        with Journal(path) as journal:
            outcome = ask_all(endpoint, requests, journal)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1

    each = len(requests) // len(records)
    judged = []
    for i, record in enumerate(records):
        ratings = outcome.values[i * each : (i + 1) * each]
        if None in ratings:
            continue
        turned = [pair if j < arguments.samples else pair[::-1] for j, pair in enumerate(ratings)]
        first, second = np.mean(turned, axis=0).tolist()
        judge = {"model": arguments.model, "temperature": arguments.temperature, "ratings": each}
        scores = {"Diversity_Set1": first, "Diversity_Set2": second, "llm_diversity": verdict(first, second)}
        judged.append({**record, **scores, "judge": judge})
    write_jsonl(arguments.judged, judged)
    print(f"{arguments.judged}: {len(judged)} of {len(records)} pairs are judged.", file=sys.stderr)
    return report(outcome, path)


if __name__ == "__main__":
    raise SystemExit(main())
