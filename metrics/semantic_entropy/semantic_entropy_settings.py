"""The settings of semantic_entropy."""

import math
from dataclasses import dataclass
from typing import Any

from .core import TEXT, EmbeddedSetSettings, describe, is_pair_model, parse_choice, parse_number, setting

# Cosines of the default model from which on two texts say the same: a higher one makes more classes. 0.83 was chosen on
# people's clusters of the answers to 27 questions and on paraphrases by two generators (commit 6b60cc0); 0.74 is for
# texts without their context, and chosen by the script `same` of commit a4571294.
DEFAULT_SAME, DEFAULT_SAME_IN_CONTEXT = 0.83, 0.74


def _same(value: Any, name: str) -> Any:
    if callable(value) or is_pair_model(value):
        return value
    if isinstance(value, str):
        forms = "a number, a callable, 'nli:<model>' or 'pairs:<model>'"
        raise ValueError(f"{name} must be {forms}. Got {describe(value)}.")
    return parse_number(value, name, -1, 1)


@dataclass(frozen=True, kw_only=True)
class SemanticEntropySettings(EmbeddedSetSettings):
    """The settings of a call, as the help explains them."""

    same: Any = setting(
        None,
        _same,
        help="`float`, callable or `str`: which texts say the same. Default: 0.83, or 0.74 with `contexts`. A number: "
        "those with a cosine of at least this. A callable: those for which it returns True; it maps two lists of texts "
        "to a list of booleans, and each pair of different texts of a set is asked about once, in order of content, or "
        'with `grouping="greedy"` in the order given. `"nli:<model>"`: those that entail each other, by a '
        "sequence-classification model with a class `entailment`, as an id of the Hugging Face Hub or a "
        'folder. `"pairs:<model>"`: those for which a model with two classes gives the second a probability '
        "above 0.5. The default is calibrated for the default model, and raises an error with another `model` "
        "or with `embeddings`.",
    )
    classes: Any = setting(
        None,
        given=TEXT,
        help="shaped like `predictions`: in place of `same`, the class of each text, a string or an integer, such "
        "as people or a judge assigned it. No model is loaded.",
    )
    grouping: str = setting(
        "complete",
        parse_choice,
        choices=("complete", "greedy"),
        help='`"complete"` or `"greedy"`: how pairs make classes. `"complete"`: all texts of a class say the same '
        "as each other; texts are grouped in order of content, so the order of a set does not matter. "
        '`"greedy"`: a text joins the first class whose first member says the same, in the order given, as in '
        "NoveltyBench (arXiv 2504.05228).",
    )
    weights: Any = setting(
        None,
        given=TEXT,
        numbers=(0, 1),
        are_shares=True,
        help="shaped like `predictions`: probability of each text within its set. Each set sums to 1. Default: "
        "uniform, the discrete semantic entropy.",
    )
    log_probs: Any = setting(
        None,
        given=TEXT,
        numbers=(-math.inf, 0),
        help="shaped like `predictions`: in place of `weights`: for each text the natural log-probabilities of its "
        "tokens, a list, or one number. Weights are proportional to exp of the mean over the tokens, or of the "
        "number, as in Farquhar et al. (2024). A text that was sampled several times counts each time.",
    )
    estimator: str = setting(
        "plugin",
        parse_choice,
        choices=("plugin", "chao_shen"),
        help='`"plugin"` or `"chao_shen"`: `"plugin"`: entropy of the shares of the classes among the texts. '
        '`"chao_shen"`: the coverage-adjusted estimate of Chao and Shen (2003) of the entropy of all answers '
        "that the model could give, which small samples underestimate. It can exceed the log of the number of "
        "texts.",
    )
    patience: float = setting(
        0.8,
        parse_number,
        low=0,
        high=1,
        help="`float` in [0, 1]: with `quality`, the probability with which the reader goes on to the next text.",
    )
    min_quality: float | None = setting(
        None,
        parse_number,
        low=0,
        high=1,
        help="`float` in [0, 1]: with `quality`, also count the classes with at least one text of this quality.",
    )

    def check(self) -> None:
        """Raise a ValueError for settings that cannot be combined."""
        super().check()
        self.check_exclusive("weights", "log_probs", "estimator")
        self.check_exclusive("classes", "same")
        if self.min_quality is not None and self.quality is None:
            raise ValueError("min_quality needs quality=.")
        if self.contexts is not None and not (self.by_model or self.by_cosine):
            other = "classes" if self.same is None else "a callable same"
            raise ValueError(f"contexts and {other} cannot be combined: embeddings or a classifier must read them.")
        if self.by_cosine and self.same is None and not (self.is_default and self.embeddings is None):
            other = "model" if self.embeddings is None else "embeddings"
            raise ValueError(f"{other} needs same: its default is for the default model.")

    @property
    def undivided_by(self) -> str | None:
        """Name of the setting under which entropies of groups of a set do not add up to its own; None without one."""
        return next(iter(self.signed("quality", "log_probs")), None)

    @property
    def threshold(self) -> Any:
        """Cosine from which on two texts say the same."""
        if self.same is not None:
            return self.same
        return DEFAULT_SAME if self.contexts is None else DEFAULT_SAME_IN_CONTEXT

    @property
    def by_model(self) -> bool:
        """True if a classifier of pairs compares the texts."""
        return isinstance(self.same, str)

    @property
    def by_cosine(self) -> bool:
        """True if cosines of embeddings decide which texts say the same."""
        return self.classes is None and not self.by_model and not callable(self.same)
