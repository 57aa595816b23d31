"""Print the scores of the three diversity metrics for two sets of sentences that we wrote for one set of concepts.

The sentences of both sets contain the same five concepts. Those of the first set say four different things; those of
the second say one thing in four ways. Self-BLEU compares words, and rates the second set as more diverse; the embedding
metrics compare meanings.

    text-metrics demo
"""

import sys
from pathlib import Path

import evaluate


from spaces._kit.examples import CONCEPTS, DIFFERENT, PARAPHRASES

METRICS = Path(__file__).resolve().parents[1] / "metrics"
SETTINGS: dict[str, dict[str, int]] = {"self_bleu": {"max_order": 3}}


def main() -> None:
    """Score both sets and print a table."""
    sets = [list(DIFFERENT), list(PARAPHRASES)]
    rows = []
    for name, reading, higher in (
        ("self_bleu", "repeated n-grams", False),
        ("vendi_embed", "number of meanings", True),
        ("chamfer_diversity", "distance to nearest", True),
    ):
        scores = evaluate.load(str(METRICS / name)).compute(predictions=sets, **SETTINGS.get(name, {}))["scores"]
        first_wins = (scores[0] > scores[1]) == higher
        rows.append((name, f"{reading} ({'higher' if higher else 'lower'} = more diverse)", scores, first_wins))

    print(f"\nConcepts: {', '.join(CONCEPTS)}\n")
    for letter, title, texts in (("A", "different meanings", DIFFERENT), ("B", "one meaning, four ways", PARAPHRASES)):
        print(f"  {letter}  {title}")
        print("".join(f"       {text}\n" for text in texts))
    print(f"  {'metric':<18} {'what it looks at':<44} {'A':>6} {'B':>6}   calls more diverse")
    print(f"  {'-' * 18} {'-' * 44} {'-' * 6} {'-' * 6}   {'-' * 18}")
    for name, reading, (a, b), first_wins in rows:
        verdict = "A, rightly" if first_wins else "B: fooled by words"
        print(f"  {name:<18} {reading:<44} {a:>6.3f} {b:>6.3f}   {verdict}")
    print()


if __name__ == "__main__":
    main()
