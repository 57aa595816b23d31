"""How different are the answers of two models? Three metrics of diversity, without a network.

python examples/compare_samples.py
"""

from text_metrics import load

SAMPLES = {
    "model A": ["Put the kettle on.", "Switch the kettle on.", "Turn on the kettle.", "Put on the kettle."],
    "model B": ["Put the kettle on.", "Ask a neighbour for tea.", "Read the label first.", "Open the window."],
}

vendi = load("vendi_embed").compute(predictions=list(SAMPLES.values()))
chamfer = load("chamfer_diversity").compute(predictions=list(SAMPLES.values()))
bleu = load("self_bleu").compute(predictions=list(SAMPLES.values()), max_order=2)

print(f"{'':8} {'different meanings':>18} {'distance to nearest':>20} {'self-BLEU-2':>12}")
for name, *scores in zip(SAMPLES, vendi["scores"], chamfer["scores"], bleu["scores"], strict=True):
    print(f"{name:8} {scores[0]:>15.2f}/4 {scores[1]:>21.2f} {scores[2]:>12.2f}")
print(vendi["signature"])
