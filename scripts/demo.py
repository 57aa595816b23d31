"""Show the three diversity metrics on the example of the diversity paper (arXiv 2506.00514).

Both sets put the concepts walk, dog, take, park and couple into sentences. The first says four different things; the
second says one thing in four ways, in different words. Self-BLEU looks at the words, and takes the second for the more
diverse; the embedding metrics look at the meaning.

    python scripts/demo.py
"""

from pathlib import Path

import evaluate

METRICS = Path(__file__).resolve().parents[1] / "metrics"

CONCEPTS = "walk, dog, take, park, couple"
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


def main() -> None:
    """Score both sets and print a table."""
    sets = [DIFFERENT, PARAPHRASES]
    rows = []
    for name, reading, higher in (
        ("self_bleu", "repeated n-grams", False),
        ("vendi_embed", "number of meanings", True),
        ("chamfer_diversity", "distance to nearest", True),
    ):
        # In float32, digits are the same on every processor.
        settings = {"max_order": 3} if name == "self_bleu" else {"precision": "float32"}
        scores = evaluate.load(str(METRICS / name)).compute(predictions=sets, **settings)["scores"]
        first_wins = (scores[0] > scores[1]) == higher
        rows.append((name, f"{reading} ({'higher' if higher else 'lower'} = more diverse)", scores, first_wins))

    print(f"\nConcepts: {CONCEPTS}\n")
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
