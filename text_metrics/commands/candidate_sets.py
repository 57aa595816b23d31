"""Make the candidate sets of arXiv 2506.00514 and pair them: sets of four texts whose diversity is known to differ.

Each line of `texts.jsonl` is an object with `src`, the subject of the texts, and `texts`, at least four of them.
`generate` asks a chat model for `paraphrases` of each text, and for `nonsensical`, four grammatical texts that make no
sense; lines that have these need no model. `pairs` makes sets from each line, and pairs those of the same quality:

    high  original A B C D, para_a A A' B C, para_b A A' B B', para_c A A' A" B
    low   nonsensical; noun_shuffle, with the nouns and pronouns of each text permuted; random_shuffle, with all tokens

    text-metrics candidate-sets generate texts.jsonl --out rich.jsonl --model gpt-4o
    text-metrics candidate-sets pairs rich.jsonl --out pairs.jsonl --seed 0
"""

import argparse
import itertools
import re
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from text_metrics.commands.shared.chat import Chat, Request, add_arguments, journal_file, json_values
from text_metrics.commands.shared.command import command, make_parser
from text_metrics.commands.shared.files import read_objects, read_texts, read_topic, write_jsonl
from text_metrics.commands.shared.outputs import check_outputs

SIZE = 4
N_PARAPHRASES = 2
HIGH = ("original", "para_a", "para_b", "para_c")
LOW = ("nonsensical", "noun_shuffle", "random_shuffle")
_WORD = re.compile(r"(\w+(?:['’-]\w+)*|[^\w\s]+)")
Tagger = Callable[[list[str]], list[tuple[str, str]]]

PARAPHRASE = """\
Write {count} paraphrases of the text below. Each says the same, no more and no less, in clearly other words and, where
that sounds natural, another order. Answer with a JSON list of {count} strings and nothing else.

{text}"""

NONSENSE = """\
Write {count} sentences that are grammatical and make no sense: what they tell is impossible or absurd, each in its own
way.{topic} Answer with a JSON list of {count} strings and nothing else."""


def paraphrase_sets(
    texts: Sequence[str], paraphrases: Sequence[Sequence[str]], rng: np.random.Generator
) -> dict[str, list[str]]:
    """Compose Para-1, Para-2 and Para-3, by label, of three texts or more and the paraphrases of each.

    Which texts are A, B and C is drawn, and the order within a set too; a set that needs more paraphrases is left out.
    """
    order = rng.permutation(len(texts)).tolist()
    # Texts with the most paraphrases come first: they can be A.
    ranked = sorted(order, key=lambda i: -min(len(paraphrases[i]), 2))
    sets: dict[str, list[str]] = {}
    a, b, c = ranked[:3]
    if paraphrases[a]:
        sets["para_a"] = [texts[a], paraphrases[a][0], texts[b], texts[c]]
        if paraphrases[b]:
            sets["para_b"] = [texts[a], paraphrases[a][0], texts[b], paraphrases[b][0]]
        if len(paraphrases[a]) > 1:
            sets["para_c"] = [texts[a], *paraphrases[a][:2], texts[b]]
    return {label: [members[i] for i in rng.permutation(SIZE)] for label, members in sets.items()}


def permute(words: list[str], rng: np.random.Generator) -> list[str]:
    """Bring words into another order, if they have one."""
    moved = words
    while moved == words and len(set(words)) > 1:
        moved = [words[i] for i in rng.permutation(len(words))]
    return moved


def shuffle_nouns(text: str, rng: np.random.Generator, tag: Tagger) -> str:
    """NounShuff: permute the nouns and pronouns among their places."""
    parts = _WORD.split(text)  # words at the odd places
    tags = [kind for _, kind in tag(parts[1::2])]
    movable = [2 * i + 1 for i, kind in enumerate(tags) if kind.startswith(("NN", "PRP"))]
    for i, word in zip(movable, permute([parts[i] for i in movable], rng), strict=True):
        parts[i] = word
    return "".join(parts)


def load_tagger() -> Tagger:
    """Load NLTK's part-of-speech tagger."""
    import nltk

    try:
        nltk.pos_tag(["word"])
    except LookupError:
        download = "python -m nltk.downloader averaged_perceptron_tagger_eng"
        raise ValueError(f"NLTK's tagger is not installed. Run '{download}', or pass --no-noun-shuffle.") from None
    return nltk.pos_tag


def candidate_sets(
    record: dict[str, Any], where: str, rng: np.random.Generator, tag: Tagger | None
) -> dict[str, list[str]]:
    """Make all sets that a line of input can give: label to set."""
    texts = read_texts(record, "texts", where)
    if len(texts) < SIZE:
        raise ValueError(f"{where}: 'texts' must hold at least {SIZE}. Got {len(texts)}.")
    sets = {"original": texts[:SIZE]}
    if (paraphrases := record.get("paraphrases")) is not None:
        if not isinstance(paraphrases, list) or len(paraphrases) != len(texts):
            raise ValueError(f"{where}: 'paraphrases' must be a list for each of the {len(texts)} texts.")
        for i, alternatives in enumerate(paraphrases):
            if not isinstance(alternatives, list) or not all(isinstance(text, str) for text in alternatives):
                raise ValueError(f"{where}: 'paraphrases' of text {i} must be strings. Got {alternatives!r:.80}.")
        sets |= paraphrase_sets(texts, paraphrases, rng)
    if record.get("nonsensical") is not None:
        nonsense = read_texts(record, "nonsensical", where)
        if len(nonsense) < SIZE:
            raise ValueError(f"{where}: 'nonsensical' must hold at least {SIZE}. Got {len(nonsense)}.")
        sets["nonsensical"] = nonsense[:SIZE]
    if tag is not None:
        sets["noun_shuffle"] = [shuffle_nouns(text, rng, tag) for text in texts[:SIZE]]
    sets["random_shuffle"] = [" ".join(permute(text.split(), rng)) for text in texts[:SIZE]]
    return sets


def pair_sets(sets: dict[str, list[str]], source: Any, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Pair the sets of high quality with each other, and those of low quality; which comes first is drawn."""
    pairs = []
    for group in (HIGH, LOW):
        for labels in itertools.combinations([label for label in group if label in sets], 2):
            first, second = labels[:: rng.choice([1, -1])]
            pair = {"src": source, "set1": sets[first], "set2": sets[second]}
            pairs.append({**pair, "set1_label": first, "set2_label": second})
    return pairs


def make_pairs(arguments: argparse.Namespace) -> int:
    """Run the command `pairs`."""
    check_outputs([arguments.input], [arguments.out])
    records = list(read_objects(arguments.input))
    tag = None if arguments.no_noun_shuffle else load_tagger()
    pairs: list[dict[str, Any]] = []
    for i, (where, record) in enumerate(records):
        # A line is drawn by its own number, so that lines added later change nothing before them.
        rng = np.random.default_rng((arguments.seed, i))
        sets = candidate_sets(record, where, rng, tag)
        pairs += pair_sets(sets, record.get("src", f"line {i + 1}"), rng)
    write_jsonl(arguments.out, pairs)
    print(f"{arguments.out}: {len(pairs)} pairs.", file=sys.stderr)
    return 0


def parse_texts(answer: str, count: int, unlike: str = "") -> list[str]:
    """Read a JSON list of texts that differ, also from `unlike`; what a model writes around it does not matter."""
    for texts in json_values(answer, "["):
        if texts and all(isinstance(text, str) and text.strip() for text in texts):
            different = list(dict.fromkeys(text.strip() for text in texts if text.strip() != unlike.strip()))
            if len(different) < count:
                raise ValueError(f"it must hold {count} different texts, and holds {len(different)}")
            return different[:count]
    raise ValueError(f"it must be a JSON list of {count} strings")


def generate(arguments: argparse.Namespace) -> int:
    """Run the command `generate`."""
    check_outputs([arguments.input], [arguments.out, journal_file(arguments.out)])
    records, requests = [], []
    for where, record in read_objects(arguments.input):
        texts = read_texts(record, "texts", where)
        records.append((record, len(texts)))
        for i, text in enumerate(texts):
            parse = partial(parse_texts, count=N_PARAPHRASES, unlike=text)
            prompt = PARAPHRASE.format(count=N_PARAPHRASES, text=text)
            requests.append(Request(f"{where}, text {i}", [{"role": "user", "content": prompt}], parse))
        topic = read_topic(record)
        prompt = NONSENSE.format(count=SIZE, topic=f" Use these words: {topic}." if topic else "")
        # Lines about the same thing get nonsense of their own.
        requests.append(
            Request(where, [{"role": "user", "content": prompt}], partial(parse_texts, count=SIZE), len(records))
        )
    answers, code = Chat(arguments, arguments.out).ask(requests)
    values = iter(answers)
    written = []
    for record, count in records:
        paraphrases, nonsense = [next(values) or [] for _ in range(count)], next(values)
        rich = {**record, "paraphrases": paraphrases}
        written.append({**rich, "nonsensical": nonsense} if nonsense else rich)
    write_jsonl(arguments.out, written)
    return code


@command
def main() -> int:
    """Run the command."""
    parser = make_parser(__doc__)
    commands = parser.add_subparsers(required=True)
    generating = commands.add_parser("generate", help="add paraphrases and nonsense by a chat model")
    add_arguments(generating)
    pairing = commands.add_parser("pairs", help="compose sets, and pair them")
    pairing.add_argument("--seed", type=int, default=0)
    pairing.add_argument("--no-noun-shuffle", action="store_true", help="leave out the set that needs NLTK's tagger")
    for one, run in ((generating, generate), (pairing, make_pairs)):
        one.add_argument("input", type=Path)
        one.add_argument("--out", type=Path, required=True, metavar="FILE")
        one.set_defaults(run=run)
    arguments = parser.parse_args()
    return arguments.run(arguments)
