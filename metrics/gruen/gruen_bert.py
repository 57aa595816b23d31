"""The paper's backbone: a masked language model, an acceptability classifier, and ALBERT's sentence-order head.

Each is a transformer that the user names, loaded with its Auto class.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .core import TRANSFORMER, find_device, find_model, load_once, quiet_loading, token_limit, warn
from .gruen_backbone import Backbone, Forward, Loaded, SentenceScores, count_tokens
from .gruen_settings import GruenSettings

if TYPE_CHECKING:
    import torch

LM_MODEL = "bert-base-cased"
COLA_MODEL = "textattack/bert-base-uncased-CoLA"

# The original's linear map from the sum of likelihood and acceptability to [0, 1].
_SCALE = 1 / 8
_SHIFT = 0.5
# The Auto class of each model, and its head as an error names it.
_HEADS = {
    "lm_model": ("AutoModelForMaskedLM", "a masked language model"),
    "cola_model": ("AutoModelForSequenceClassification", "a classifier"),
    "sop_model": ("AutoModelForPreTraining", "sentence-order prediction"),
}


class BertBackbone(Backbone):
    """The backbone of the paper, over transformers named by Hub id or folder.

    Only the models of the components to score are loaded, and long sentences are read in windows.

    Raises a TypeError or ValueError if a model cannot be found or lacks the head it needs.
    """

    def __init__(self, settings: GruenSettings) -> None:
        self.identity: dict[str, str] = {}
        self._settings = settings
        if "grammaticality" in settings.scored:
            self._lm = self._load("lm_model", settings.lm_model or LM_MODEL)
            self._cola = self._load("cola_model", settings.cola_model or COLA_MODEL)
            self._acceptable = self._acceptable_label()
        if "coherence" in settings.scored:
            self._sop = self._load("sop_model", settings.sop_model)
            if not hasattr(self._sop.model, "sop_classifier"):
                kind = type(self._sop.model).__name__
                raise ValueError(f"sop_model is a {kind}, which has no head for sentence order. Pass an ALBERT.")

    def score_sentences(self, sentences: list[str]) -> SentenceScores:
        """Score n different sentences, once with each of the two models."""
        loss = self._read("lm_model", self._lm, sentences, self._token_loss)
        acceptability = self._read("cola_model", self._cola, sentences, self._acceptable_logit)
        with np.errstate(over="ignore"):
            likelihood = np.exp(-0.5 * np.exp(loss))
        return SentenceScores(likelihood, acceptability, loss)

    def grammaticality(self, likelihood: np.ndarray, acceptability: np.ndarray) -> np.ndarray:
        """Combine both scores of n sentences as the paper's code does: (n,), in [0, 1]."""
        return np.clip(self.rescale(likelihood, acceptability), 0.0, 1.0)

    def rescale(self, likelihood: np.ndarray, acceptability: np.ndarray) -> np.ndarray:
        """Map the sum of likelihood and acceptability linearly: (n,)."""
        return (likelihood + acceptability) * _SCALE + _SHIFT

    def score_order(self, pairs: list[tuple[str, str]]) -> np.ndarray:
        """Return the probability, by ALBERT's own head, that each pair is in its right order: (n,), in [0, 1]."""
        import torch

        tokens = tokenize_cut(self._sop, pairs, "pairs of sentences", "sop_model")

        def forward(_: np.ndarray, inputs: Any) -> "torch.Tensor":
            # Class 0 is the given order, class 1 the reverse.
            return torch.softmax(self._sop.model(**inputs).sop_logits.double(), dim=-1)[:, 0]

        return self._sop.run(tokens, forward, self._settings, "Order")

    def _load(self, parameter: str, model: Any) -> Loaded:
        """Load a model with its trained head in float32, and note what decides its scores."""
        import torch

        device = find_device(self._settings.device)
        files = find_model(model, parameter, TRANSFORMER)
        auto_class, kind = _HEADS[parameter]
        self.identity[parameter] = files.identity

        def load() -> Loaded:
            import transformers

            with quiet_loading(parameter, files.path, kind):
                tokenizer = transformers.AutoTokenizer.from_pretrained(files.path, local_files_only=True)
                head, report = getattr(transformers, auto_class).from_pretrained(
                    files.path, local_files_only=True, dtype=torch.float32, output_loading_info=True
                )
            missing = sorted(report["missing_keys"]) + sorted(map(str, report["mismatched_keys"]))
            if missing:
                raise ValueError(
                    f"{parameter}: {files.path} has no trained weights for {kind}: {missing[0]} and "
                    f"{len(missing) - 1} more are missing, and would be random. Pass a model saved with this head."
                )
            return Loaded(head.eval().to(device), tokenizer, token_limit(head, tokenizer))

        return load_once((auto_class, files.identity, device), load)

    def _token_loss(self, _: np.ndarray, inputs: Any) -> "torch.Tensor":
        """Average the losses of all tokens of each sequence, none masked; special tokens count, as in the original."""
        import torch

        ids = inputs["input_ids"]
        mask = inputs["attention_mask"]
        logits = self._lm.model(**inputs).logits.float()
        losses = torch.logsumexp(logits, dim=-1) - logits.gather(-1, ids.unsqueeze(-1)).squeeze(-1)
        return (losses * mask).sum(1) / mask.sum(1)

    def _acceptable_logit(self, _: np.ndarray, inputs: Any) -> "torch.Tensor":
        return self._cola.model(**inputs).logits[:, self._acceptable].double()

    def _acceptable_label(self) -> int:
        """Find the class of acceptable sentences: by its name if it has one, otherwise 1, as in CoLA."""
        config = self._cola.model.config
        if config.num_labels < 2:
            raise ValueError(f"cola_model must have two classes, unacceptable and acceptable. Got {config.num_labels}.")
        names = {str(name).lower(): int(place) for place, name in config.id2label.items()}
        return names.get("acceptable", 1)

    def _read(self, parameter: str, loaded: Loaded, sentences: list[str], forward: Forward) -> np.ndarray:
        """Score sentences, long ones in windows: (n,). The progress bar has the name of the parameter."""
        windows, tokens = loaded.read_windows(sentences)
        return windows.average(loaded.run(tokens, forward, self._settings, parameter)[:, None])[:, 0]


def tokenize_cut(loaded: Loaded, parts: Sequence[tuple[str, ...]], what: str, reader: str) -> Any:
    """Tokenize texts or pairs of texts, cut to the limit with a warning that has the count."""
    n_cut = int((count_tokens(loaded.tokenize(parts)) > loaded.limit).sum())
    if n_cut:
        longer = f"{n_cut} of {len(parts)} {what} are longer than {reader} reads, {loaded.limit} tokens"
        warn(f"{longer}: the rest is cut off.")
    return loaded.tokenize(parts, cut=True)
