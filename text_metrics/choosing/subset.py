"""Choose a diverse subset of good texts of each set."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

import text_metrics
from text_metrics.choosing.greedy import choose_greedily, score_subsets
from text_metrics.core_api import (
    TEXT,
    EmbeddedSetSettings,
    TextSets,
    content_ranks,
    flatten,
    format_sizes,
    number_labels,
    parse_count,
    parse_number,
    parse_sets,
    parse_values,
    setting,
    signature,
    split_list,
)
from text_metrics.stripping import Stripper

_SEED = 0
# Settings of metrics that a choice does not have.
_UNUSED = ("confidence", "confidence_by", "details")


@dataclass(frozen=True, kw_only=True)
class ChoiceSettings(EmbeddedSetSettings):
    """The settings of a choice."""

    keep: int | None = setting(None, parse_count, help="`int`: texts to choose of each set, at most.")
    min_quality: float = setting(
        0.0, parse_number, low=0, high=1, help="`float` in [0, 1]: texts of a lower quality are not chosen."
    )
    min_distance: float = setting(
        0.0,
        parse_number,
        low=0,
        high=2,
        help="`float` in [0, 2]: the least cosine distance of two chosen texts; the one chosen first stays.",
    )
    classes: Any = setting(
        None,
        given=TEXT,
        help="flat, or nested like `texts`: a class of each text. Those of one class of a set are equal, others have "
        "nothing in common, and none is embedded.",
    )

    def check(self) -> None:
        """Raise an error for settings that cannot be combined, or that only metrics have."""
        super().check()
        for name in self.signed(*_UNUSED):
            raise TypeError(f"choose has no argument {name!r}.")
        self.check_exclusive("classes", "embeddings")
        self.check_exclusive("classes", "contexts")
        if self.min_quality > 0 and self.quality is None:
            raise ValueError("min_quality needs quality, of each text.")


def choose(texts: Any, keep: int | None = None, strip: Any = None, **settings: Any) -> dict[str, Any]:
    """Choose texts of each set, one at a time: always the one that most increases the score of the chosen ones.

    The score of a subset is its mean quality times its Vendi score of order 2. Of equal texts, only the first one of
    the best quality may be chosen, and an empty text is not chosen. Of two texts that add as much, the first one by
    content is chosen. A warning says how many texts hold more than an answer, such as reasoning.

    Parameters
    ----------
    texts : a flat list of n texts, which is one set or, with `set_size`, consecutive sets; or a list of sets
    keep : the most texts to choose of a set; None for all that `min_quality` and `min_distance` admit
    strip : what is removed from texts before they are compared, because it is not the answer: "reasoning", "special"
        (tokens and chat markers), "prompt", which needs `contexts`, as a list or with commas between them
    **settings : `quality`, of each text, in [0, 1]; `min_quality`, below which no text is chosen; `min_distance`, the
        least cosine distance of chosen texts; `embeddings`, an array of shape (n, d) or a list of arrays, in place of
        an encoder; `classes` of texts, in place of embeddings; `contexts`, the prompt of each set; `set_size`, and the
        settings of the encoder, such as `model`, as for `vendi_embed`

    Returns
    -------
    dict with
        chosen : the indices of the chosen texts in their set, in the order of choice: a list, or one for each set
        chosen_score, scores : the score of the chosen texts: the mean over sets, and of each set
        random_score, random_scores : those of as many texts of each set, drawn at random
        n_empty : the number of texts of spaces only
        n_merged : the number of other texts that equal an earlier one of their set
        n_below : the number of texts below `min_quality`
        signature : the settings that determine the choice

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid, as for `compute`.
    """
    stripper = Stripper(strip)
    if keep is not None:
        settings["keep"] = keep
    parsed = ChoiceSettings.read(settings, "choose")
    sets = parse_sets(texts, parsed.set_size, "texts")
    prompts = None
    if parsed.contexts is not None:
        contexts = parsed.declared()["contexts"].parse(parsed.contexts, sets, "contexts")
        prompts = [contexts[i] for i in sets.owners.tolist()]
    elif stripper.needs_prompts:
        raise ValueError("strip: 'prompt' requires contexts, the prompts of the texts.")
    result = choose_answers(sets._replace(texts=stripper(sets.texts, prompts)), parsed)
    result["signature"] = stripper.sign(result["signature"])
    return result


def choose_answers(sets: TextSets, settings: ChoiceSettings) -> dict[str, Any]:
    """Choose texts that are known to hold only answers, as `choose` does."""
    # It imports `evaluate`.
    from text_metrics.core_api import one_thread

    quality = np.ones(len(sets.texts))
    if settings.quality is not None:
        quality = parse_values(settings.quality, sets, "quality")
    with one_thread():
        embeddings, signed = _embed(sets, settings)
        candidates = _candidates(sets, quality, settings.min_quality)
        rows = np.concatenate(candidates)
        sizes = np.array(list(map(len, candidates)))
        most = sizes if settings.keep is None else np.minimum(settings.keep, sizes)
        ranks = content_ranks([sets.texts[i] for i in rows])
        picked = choose_greedily(embeddings[rows], quality[rows], sizes, most, ranks, settings.min_distance)
        chosen = [places[order] for places, order in zip(candidates, picked, strict=True)]
        # As many texts of each set at random, for comparison.
        drawn = []
        for start, size, places in zip(sets.starts, sets.sizes.tolist(), chosen, strict=True):
            drawn.append(start + _draw(size, len(places)))
        scores = score_subsets(embeddings, quality, chosen)
        random_scores = score_subsets(embeddings, quality, drawn)
    in_sets = [(rows - start).tolist() for rows, start in zip(chosen, sets.starts, strict=True)]
    signed |= settings.signed("keep", "min_quality", "min_distance", "quality")
    answers = [[text for text in members if text.strip()] for members in split_list(sets.texts, sets.sizes)]
    return {
        "chosen": in_sets if sets.nested or settings.set_size else in_sets[0],
        "chosen_score": float(scores.mean()),
        "scores": scores.tolist(),
        "random_score": float(random_scores.mean()),
        "random_scores": random_scores.tolist(),
        "n_empty": len(sets.texts) - sum(map(len, answers)),
        "n_merged": sum(len(members) - len(set(members)) for members in answers),
        "n_below": int((quality < settings.min_quality).sum()),
        "signature": signature("choose", **signed, set_size=format_sizes(sets.sizes)),
    }


def _embed(sets: TextSets, settings: ChoiceSettings) -> tuple[np.ndarray, dict[str, Any]]:
    """Return the vectors of texts, (n, d), or their classes within sets, (n,), and their entries of a signature."""
    if settings.classes is None:
        vectors, signed = text_metrics.load("vendi_embed").embed(sets, settings)
        return vectors, dict(signed)
    labels = flatten(settings.classes, sets, "classes", "label", are_lists=False)
    number_labels(labels, lambda i: f"classes ({sets.where(i)})")
    codes = [number_labels(members, str) for members in split_list(labels, sets.sizes)]
    return np.concatenate(codes), {"classes": "given"}


def _candidates(sets: TextSets, quality: np.ndarray, least: float) -> list[np.ndarray]:
    """Return the rows of the different texts of each set, in order: of equal ones, the first of the best quality."""
    rows_of_sets = []
    for start, size in zip(sets.starts.tolist(), sets.sizes.tolist(), strict=True):
        best: dict[str, int] = {}
        for i in range(start, start + size):
            text = sets.texts[i]
            if text.strip() and quality[i] >= least and (text not in best or quality[i] > quality[best[text]]):
                best[text] = i
        rows_of_sets.append(np.array(sorted(best.values()), dtype=np.int64))
    return rows_of_sets


@lru_cache(maxsize=64)
def _draw(size: int, n: int) -> np.ndarray:
    """Draw n of the numbers below a size at random: the same ones for each set of a size."""
    return np.random.default_rng((_SEED, size, n)).choice(size, n, replace=False)
