"""Which texts of a set are well written, and which add something new? Quality and contributions, without a network.

python examples/quality_and_diversity.py
"""

from text_metrics import contributions, load

TEXTS = [
    "The dog runs across the park. It chases a red ball.",
    "A dog is running through the park. It is after a red ball.",
    "Two children fly a kite on the beach. The wind is strong.",
    "Kite the beach on children. Strong wind the is two.",
]

quality = load("gruen").compute(predictions=TEXTS)["scores"]
result = load("vendi_embed").compute(predictions=[TEXTS], quality=[quality])
added = contributions("vendi_embed", [TEXTS])[0]

print("quality  contribution  text")
for text, grade, contribution in zip(TEXTS, quality, added, strict=True):
    print(f"{grade:>7.2f} {contribution:>13.2f}  {text}")
print(f"{result['vendi_embed']:.2f} different texts; {result['quality_vendi_embed']:.2f}, times their mean quality")
