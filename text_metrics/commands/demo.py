"""Print the scores of the three diversity metrics for two sets of sentences that we wrote for one set of concepts.

Self-BLEU compares words, and rates the paraphrases as more diverse; the embedding metrics compare meanings.

    text-metrics demo
"""

from collections.abc import Sequence

from text_metrics import load
from text_metrics.console import Parser

# A set of concepts of the CommonGen task, and sentences of ours that contain them.
CONCEPTS = ("walk", "dog", "take", "park", "couple")
DIFFERENT = [
    "The couple walk in the park and take photos of a dog.",
    "The couple walk in the park when a thief runs up to take their dog.",
    "The couple take a taxi to the park because their old dog cannot walk.",
    "The couple take a vote to keep every dog off the walk in the park.",
]
PARAPHRASES = [
    "The couple take their dog for a walk in the park.",
    "A couple is taking the dog to walk at a park.",
    "At the park, two partners walk a dog they have taken along.",
    "Their dog was taken on a park walk by this couple.",
]


def main(words: Sequence[str] | None = None) -> int:
    """Score both sets and print a table."""
    Parser(__doc__).parse_args(words)
    print(f"\nConcepts: {', '.join(CONCEPTS)}\n")
    for title, texts in (("A  different meanings", DIFFERENT), ("B  one meaning, four ways", PARAPHRASES)):
        print(f"  {title}")
        print("".join(f"       {text}\n" for text in texts))
    print(f"  {'metric':<18} {'what it looks at':<44} {'A':>6} {'B':>6}   calls more diverse")
    print(f"  {'-' * 18} {'-' * 44} {'-' * 6} {'-' * 6}   {'-' * 18}")
    for name, reading, sign, settings in (
        ("self_bleu", "repeated n-grams (lower = more diverse)", -1, {"max_order": 3}),
        ("vendi_embed", "number of meanings (higher = more diverse)", 1, {}),
        ("chamfer_diversity", "distance to nearest (higher = more diverse)", 1, {}),
    ):
        a, b = load(name).compute(predictions=[DIFFERENT, PARAPHRASES], **settings)["scores"]
        verdict = "A (correct)" if sign * a > sign * b else "B (misled by wording)"
        print(f"  {name:<18} {reading:<44} {a:>6.3f} {b:>6.3f}   {verdict}")
    print()
    return 0
