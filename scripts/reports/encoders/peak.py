"""The default encoder against the limit of the machine: the matrix multiplications of its layers alone, by torch.

The batches are those that `token_batches` makes of the texts, so that both sides multiply matrices of the same shapes,
padding included.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from scripts.reports.benchmark.measure import take_turns
from text_metrics.commands.shared.pages import markdown_table
from text_metrics.metrics._core.core_encoder import EncoderSettings, encode
from text_metrics.metrics._core.core_models import DEFAULT_MODEL, load_encoder
from text_metrics.metrics._core.core_tokens import count_tokens, token_batches


class Multiplications:
    """The matrix multiplications of a BERT for batches of some shapes, on random numbers.

    Parameters
    ----------
    config : of the transformer
    shapes : texts and tokens of each batch
    """

    def __init__(self, config: object, shapes: Sequence[tuple[int, int]]) -> None:
        names = ("num_hidden_layers", "hidden_size", "intermediate_size", "num_attention_heads")
        self._layers, self._width, self._inner, self._heads = (int(getattr(config, name)) for name in names)
        self._shapes = shapes
        # Each layer has weights of its own, which do not stay in the cache until the next batch.
        width, inner = self._width, self._inner
        self._weights = [
            [torch.randn(out, into) for out, into in [(width, width)] * 4 + [(inner, width), (width, inner)]]
            for _ in range(self._layers)
        ]

        self._numbers = torch.randn(max(b * n * max(inner, self._heads * n) for b, n in shapes))

    def _random(self, *shape: int) -> torch.Tensor:
        return self._numbers[: math.prod(shape)].view(shape)

    @torch.inference_mode()
    def run(self) -> None:
        """Multiply: queries, keys, values; scores of attention, and its sums; the output; both layers of the FFN."""
        for b, n in self._shapes:
            states, inner = self._random(b * n, self._width), self._random(b * n, self._inner)
            heads = self._random(b * self._heads, n, self._width // self._heads)
            attention = self._random(b * self._heads, n, n)
            for *square, up, down in self._weights:
                for weight in square:
                    states @ weight.T
                torch.bmm(heads, heads.transpose(1, 2))
                torch.bmm(attention, heads)
                states @ up.T
                inner @ down.T


def peak_table(texts: list[str], rounds: int) -> list[str]:
    """Write how many texts a second the encoder and its parts take, and the share of the multiplications in each."""
    loaded, _ = load_encoder(DEFAULT_MODEL, None, "cpu")
    model, tokenizer = loaded.model, loaded.tokenizer
    texts = list(dict.fromkeys(texts))
    lengths, _ = count_tokens(tokenizer, texts)
    batches = [[texts[i] for i in batch] for batch in token_batches(lengths, "cpu")]
    tokens = [model.preprocess(batch) for batch in batches]
    inputs = [{name: batch[name] for name in ("input_ids", "attention_mask")} for batch in tokens]
    transformer = model[0].auto_model
    shapes = [tuple(batch["input_ids"].shape) for batch in tokens]
    multiplications = Multiplications(transformer.config, shapes)

    @torch.inference_mode()
    def forward() -> None:
        for batch in inputs:
            transformer(**batch)

    steps: dict[str, Callable[[], object]] = {
        "the multiplications alone": multiplications.run,
        "the layers, of tokens": forward,
        "count tokens": lambda: count_tokens(tokenizer, texts),
        "tokenize batches": lambda: [model.preprocess(batch) for batch in batches],
        "the encoder": lambda: encode(texts, EncoderSettings(device="cpu")),
    }
    with FlopCounterMode(display=False) as counter:
        multiplications.run()
    take_turns(steps, 1)  # a warm-up
    taken = take_turns(steps, rounds)
    whole = np.array(taken["the encoder"])
    rows = [["step", "texts per second of processor time", "share of the encoder's time (range of turns)"]]
    for name, seconds in taken.items():
        shares = 100 * np.array(seconds) / whole
        spread = f" ({shares.min():.0f}–{shares.max():.0f})" if name != "the encoder" else ""
        rows.append([name, f"{len(texts) / np.median(seconds):.0f}", f"{np.median(shares):.0f} %{spread}"])
    rate = counter.get_total_flops() / np.median(taken["the multiplications alone"]) / 1e9
    n_tokens, n_padded = int(lengths.sum()), sum(b * n for b, n in shapes)
    padding = 100 * (1 - n_tokens / n_padded)
    about = f"{len(texts)} texts in {len(batches)} batches, of which padding is {padding:.1f} %. "
    return [*markdown_table(rows), "", f"{about}The multiplications alone: {rate:.0f} GFLOP per second."]
