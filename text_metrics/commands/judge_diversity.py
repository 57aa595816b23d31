"""Have a chat model judge which of two sets of texts is the more diverse, as arXiv 2506.00514 does.

Both sets of a pair are rated from 1 to 5 several times, in both orders, and the ratings are averaged. Each line of the
input is a pair, a JSON object with `set1` and `set2`, lists of texts, and optionally `src`, their subject.
text-metrics meta-eval reads the output. Each answer is saved at once in judged.jsonl.journal: after a crash, the same
command continues and repeats no request.

    text-metrics judge-diversity pairs.jsonl --out judged.jsonl --model my-model --base-url http://localhost:8000/v1
"""

import sys
from pathlib import Path

import numpy as np

from text_metrics.commands.meta_eval.pairs import is_vague
from text_metrics.commands.shared.chat import Chat, Request, add_arguments, few_shot, journal_file, json_values
from text_metrics.commands.shared.command import command, make_parser
from text_metrics.commands.shared.files import read_objects, read_texts, read_topic, write_jsonl
from text_metrics.commands.shared.outputs import check_outputs

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

# Questions as `ask` writes them, each with its answer.
EXAMPLES = (
    (
        """\
Topic: boy, ladder, climb

Set 1:
- A boy climbs a ladder to pick apples.
- The ladder broke as the boy climbed it.
- Firemen teach a boy to climb their ladder.
- No boy may climb this ladder, says the sign.

Set 2:
- The boy climbs up the ladder.
- A boy is climbing a ladder.
- Up the ladder climbs the boy.
- A ladder is being climbed by a boy.""",
        '{"set1": 5, "set2": 1}',
    ),
    (
        """\
Topic: rain, street, umbrella

Set 1:
- Rain umbrella the street on opened in a.
- A the in umbrella street opened rain on.
- Opened street on a rain the in umbrella.
- The on street in a opened umbrella rain.

Set 2:
- She opened her umbrella as rain fell on the street.
- On the street, she put up an umbrella against the rain.
- The umbrella he sold on the street kept out no rain.
- It rained, so she walked down the street under an umbrella.""",
        '{"set1": 1, "set2": 3}',
    ),
)


def ask(topic: str, first: list[str], second: list[str]) -> str:
    """Write the question about two sets."""
    parts = [f"Topic: {topic}"] if topic else []
    for name, texts in (("Set 1", first), ("Set 2", second)):
        parts.append("\n".join([f"{name}:", *(f"- {' '.join(text.split())}" for text in texts)]))
    return "\n\n".join(parts)


def parse_ratings(answer: str) -> tuple[float, float]:
    """Read the ratings, from 1 to 5; what a model writes around the JSON does not matter."""
    for ratings in json_values(answer, "{"):
        first, second = (ratings.get(key) for key in ("set1", "set2"))
        if all(isinstance(rating, (int, float)) and 1 <= rating <= 5 for rating in (first, second)):
            return float(first), float(second)
    raise ValueError('it must hold {"set1": <rating>, "set2": <rating>}, both from 1 to 5')


@command
def main() -> int:
    """Run the command."""
    parser = make_parser(__doc__)
    parser.add_argument("pairs", type=Path, help="pairs of sets, as JSON lines")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="where to write them with ratings")
    parser.add_argument("--samples", type=int, default=5, help="ratings of each pair in each order")
    add_arguments(parser)
    arguments = parser.parse_args()
    if arguments.samples < 1:
        raise ValueError(f"--samples must be at least 1. Got {arguments.samples}.")
    check_outputs([arguments.pairs], [arguments.out, journal_file(arguments.out)])
    records, requests = [], []
    for where, record in read_objects(arguments.pairs):
        sets = [read_texts(record, key, where) for key in ("set1", "set2")]
        records.append(record)
        for first, second in (sets, sets[::-1]):
            prompt = few_shot(INSTRUCTIONS, EXAMPLES, ask(read_topic(record), first, second), system=True)
            requests += [Request(where, prompt, parse_ratings, sample) for sample in range(arguments.samples)]
    answers, code = Chat(arguments, arguments.out).ask(requests)

    n_samples = arguments.samples
    judge = {"model": arguments.model, "temperature": arguments.temperature, "ratings": 2 * n_samples}
    judged = []
    for i, record in enumerate(records):
        ratings = answers[2 * n_samples * i : 2 * n_samples * (i + 1)]
        if None not in ratings:
            # Set 2 came first in the second half of the requests.
            turned = [*ratings[:n_samples], *(rating[::-1] for rating in ratings[n_samples:])]
            first, second = np.mean(turned, axis=0).tolist()
            # As the paper does: 0 for the first set, 1 for the second, 2 for neither.
            verdict = 2 if is_vague(first, second) else int(second > first)
            scores = {"Diversity_Set1": first, "Diversity_Set2": second, "llm_diversity": verdict}
            judged.append({**record, **scores, "judge": judge})
    write_jsonl(arguments.out, judged)
    print(f"{arguments.out}: {len(judged)} of {len(records)} pairs are judged.", file=sys.stderr)
    return code
