"""Have a chat model judge which of two sets of texts is the more diverse, as arXiv 2506.00514 does.

Both sets of a pair are rated from 1 to 5 several times, in both orders, and the ratings are averaged. The output is the
input of text-metrics meta-eval.

    text-metrics judge-diversity pairs.jsonl judged.jsonl --model gpt-4o
    text-metrics judge-diversity pairs.jsonl judged.jsonl --model my-model --base-url http://localhost:8000/v1
    text-metrics judge-diversity pairs.jsonl judged.jsonl --model gpt-4o --quality

`--quality` asks in the same request how well each set is written. Each line is a pair, a JSON object with `set1` and
`set2`, lists of texts, and optionally `src`, their subject. text-metrics candidate-sets writes such files. Each answer
is saved at once in judged.jsonl.journal: after a crash, the same command continues and repeats no request.
"""

import itertools
import json
import sys
from functools import partial
from pathlib import Path

import numpy as np

from text_metrics.commands.meta_eval.pairs import is_vague
from text_metrics.commands.shared.chat import Chat, Request, add_arguments, few_shot, journal_file, json_values
from text_metrics.commands.shared.command import command, make_parser
from text_metrics.commands.shared.files import read_objects, read_texts, read_topic, write_jsonl
from text_metrics.commands.shared.outputs import check_outputs

SAMPLES = 5
LOWEST, HIGHEST = 1, 5
KEYS = ("set1", "set2")
QUALITY_KEYS = (*KEYS, "quality1", "quality2")

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

# The same request, with a second rating of each set.
QUALITY_INSTRUCTIONS = (
    INSTRUCTIONS.partition("Do not rate how true")[0]
    + """\
Apart from that, rate the quality of each set from 1 to 5: are its texts fluent, grammatical and sensible?

5: all texts are well written and make sense.
4: most texts do; a few have a slip.
3: about half of the texts are badly written or make no sense.
2: nearly all texts are badly written or make no sense.
1: no text can be understood, or none makes sense.

Neither rating is to influence the other. Answer with one line of JSON and nothing else:
{"set1": <diversity>, "set2": <diversity>, "quality1": <quality>, "quality2": <quality>}"""
)

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
        (5, 5),
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
        (1, 5),
    ),
]


def ask(topic: str, first: list[str], second: list[str]) -> str:
    """Write the question about two sets."""
    parts = [f"Topic: {topic}"] if topic else []
    for name, texts in (("Set 1", first), ("Set 2", second)):
        parts.append("\n".join([f"{name}:", *(f"- {' '.join(text.split())}" for text in texts)]))
    return "\n\n".join(parts)


def messages(topic: str, first: list[str], second: list[str], quality: bool = False) -> list[dict[str, str]]:
    """Write the instructions, the examples with their answers, and the question."""
    keys = QUALITY_KEYS if quality else KEYS
    examples = (
        (ask(example, *sets), json.dumps(dict(zip(keys, diversities + qualities, strict=False))))
        for example, *sets, diversities, qualities in EXAMPLES
    )
    instructions = QUALITY_INSTRUCTIONS if quality else INSTRUCTIONS
    return few_shot(instructions, examples, ask(topic, first, second), system=True)


def parse_ratings(answer: str, keys: tuple[str, ...] = KEYS) -> tuple[float, ...]:
    """Read the ratings, from 1 to 5; what a model writes around the JSON does not matter."""
    for ratings in json_values(answer, "{"):
        values = [ratings.get(key) for key in keys]
        if all(isinstance(rating, (int, float)) and LOWEST <= rating <= HIGHEST for rating in values):
            return tuple(map(float, values))
    wanted = ", ".join(f'"{key}": <rating>' for key in keys)
    raise ValueError(f"it must hold {{{wanted}}}, {'both' if len(keys) == 2 else 'all'} from {LOWEST} to {HIGHEST}")


def verdict(first: float, second: float) -> int:
    """Call the set with the higher rating, as the paper does: 0 the first, 1 the second, 2 neither."""
    return 2 if is_vague(first, second) else int(second > first)


def _scores(name: str, means: list[float]) -> dict[str, float]:
    """Name the mean ratings of both sets, and the verdict, as the released files do."""
    return {f"{name}_Set1": means[0], f"{name}_Set2": means[1], f"llm_{name.lower()}": verdict(*means)}


@command
def main() -> int:
    """Run the command."""
    parser = make_parser(__doc__)
    parser.add_argument("pairs", type=Path, help="pairs of sets, as JSON lines")
    parser.add_argument("judged", type=Path, help="where to write them with their ratings")
    parser.add_argument("--samples", type=int, default=SAMPLES, help="ratings of each pair in each order")
    parser.add_argument("--quality", action="store_true", help="ask for the quality of each set in the same call")
    parser.add_argument("--one-order", action="store_true", help="only set 1 first, at half the cost")
    add_arguments(parser)
    arguments = parser.parse_args()

    if arguments.samples < 1:
        raise ValueError(f"--samples must be at least 1. Got {arguments.samples}.")
    check_outputs([arguments.pairs], [arguments.judged, journal_file(arguments.judged)])
    keys = QUALITY_KEYS if arguments.quality else KEYS
    parse = partial(parse_ratings, keys=keys)
    records, requests = [], []
    # Two pairs with the same sets get ratings of their own.
    repeats: dict[str, itertools.count] = {}
    for where, record in read_objects(arguments.pairs):
        sets = [read_texts(record, key, where) for key in ("set1", "set2")]
        records.append(record)
        for swapped in (False,) if arguments.one_order else (False, True):
            first, second = sets[::-1] if swapped else sets
            prompt = messages(read_topic(record), first, second, arguments.quality)
            numbers = repeats.setdefault(json.dumps(prompt), itertools.count())
            requests += [Request(where, prompt, parse, next(numbers)) for _ in range(arguments.samples)]
    with Chat(arguments, arguments.judged) as chat:
        answers, code = chat.ask(requests)

    each = len(requests) // len(records)
    judged = []
    for i, record in enumerate(records):
        ratings = answers[i * each : (i + 1) * each]
        if None in ratings:
            continue
        # Set 2 came first in the second half of the requests.
        turned = [
            rating if j < arguments.samples else tuple(rating[k ^ 1] for k in range(len(keys)))
            for j, rating in enumerate(ratings)
        ]
        means = np.mean(turned, axis=0).tolist()
        judge = {"model": arguments.model, "temperature": arguments.temperature, "ratings": each}
        scores = _scores("Diversity", means[:2])
        if arguments.quality:
            scores |= _scores("Quality", means[2:])
        judged.append({**record, **scores, "judge": judge})
    write_jsonl(arguments.judged, judged)
    print(f"{arguments.judged}: {len(judged)} of {len(records)} pairs are judged.", file=sys.stderr)
    return code
