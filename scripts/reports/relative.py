"""Measure relative likelihood as a rating of sense on the released nonsense.

    python -m scripts.reports.relative --model FOLDER --dtype bfloat16 --measured FILE --rated FILE --ratings FOLDER

The protocol was written before the first released text was measured. Nothing is trained on or chosen by these texts.

1. `reordered`: the sentence against up to 6 others, in which two nouns, or two verbs of the same form, are exchanged.
   Without such a pair, a noun is exchanged with a pronoun, an adjective or a gerund. At most 2 exchange verbs; nouns of
   the same number and words that are near each other come first. The rating is the log-probability of the sentence
   minus the highest one of the others (`max`) or the logarithm of their mean probability (`mean`), in total or divided
   by the number of tokens of the sentence; 0 if nothing can be exchanged.
2. `masked`: the sentence against others in which one noun, verb or adjective is replaced by a neutral word of its part
   of speech (`word`) or by "___" (`blank`). The rating is the lowest or the mean difference of the log-probabilities
   over these words; 0 if there are none.
3. Of each form, the variant is chosen that has the highest mean of the AUC on the 60 pairs of our own sentences and the
   AUC on 60 sentences that an instruct model has rated, half of them above 0.5 (`--rated`, JSON lines of `kind`,
   `text` and `asked`). `--own` prints these.
4. The chosen variant of each form is measured once, on the original, the nonsensical and the Para-3 sets of the first
   concepts that `text-metrics meta-eval` draws. Its weight is the probability by a logistic regression on it, fitted to
   our own pairs; with `asked`, by one on both. `asked` and the likelihood are read from `--measured`, the file
   `measured.jsonl` that `scripts.reports.sense` has written.
"""

import json
import re
import sys
import time
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from scripts import ROOT
from scripts.arguments import data_folder
from scripts.reports.sense import VENDI, read_own, read_sets
from text_metrics import load
from text_metrics.commands.meta_eval.generated_sets import ORIGINAL, POORER, Kinds, auc_by_kind, originals_above
from text_metrics.commands.meta_eval.raters import Rater, gruen_rater, shortness_rater
from text_metrics.commands.meta_eval.rows import Scoring, embedding_rows, encode_texts, quality_rows, rule_rows
from text_metrics.commands.shared.causal import DTYPES, load_causal
from text_metrics.commands.shared.command import command, make_parser
from text_metrics.commands.shared.files import read_objects
from text_metrics.commands.shared.pages import markdown_table

# The variants of each form that were chosen on our own sentences.
CHOSEN = {"reordered": "mean, per token", "masked": "word, mean"}
VARIANTS = {
    "reordered": ("max, total", "mean, total", "max, per token", "mean, per token"),
    "masked": ("word, lowest", "word, mean", "blank, lowest", "blank, mean"),
}
KINDS = (ORIGINAL, "nonsensical", "para_c")
RATED_KINDS = ("caption", "sensible", "mild", "nonsense")
MOST = 6
# Rated sentences above 0.5, and of the others.
N_RATED = 30
_AT_ONCE = 5
# Nodes of a trie that are read at once.
_NODES = 768
_WORD = re.compile(r"[A-Za-z]+(?:['’-][A-Za-z]+)*|\d+|[^\w\s]")
_AUXILIARIES = frozenset(
    ["be", "am", "is", "are", "was", "were", "been", "being", "have", "has", "had", "having", "do", "does", "did"]
)
_CLASSES = {"NN": "noun", "VB": "verb", "JJ": "adjective"}
_MASKS = {
    "NNS": "things",
    "NNP": "someone",
    "NNPS": "things",
    "VB": "do",
    "VBP": "do",
    "VBZ": "does",
    "VBD": "did",
    "VBG": "doing",
    "VBN": "done",
}
_DETERMINERS = ("DT", "JJ", "JJR", "JJS", "PRP$", "NN", "CD", "POS")


class Words:
    """The words of a text with their parts of speech.

    content : numbers of the nouns, verbs and adjectives
    """

    def __init__(self, text: str) -> None:
        from nltk import pos_tag

        self._text = text
        self._spans = [match.span() for match in _WORD.finditer(text)]
        self._words = [text[start:end] for start, end in self._spans]
        self.tags = [tag for _, tag in pos_tag(self._words)]
        self._classes = [
            _CLASSES.get(tag[:2], "") if word[0].isalpha() and word.lower() not in _AUXILIARIES else ""
            for word, tag in zip(self._words, self.tags, strict=True)
        ]
        self.content = [i for i, name in enumerate(self._classes) if name]

    def _replaced(self, changes: dict[int, str]) -> str:
        """Write the text with other words, with the article that fits and a capital letter at the beginning."""
        changes = dict(changes)
        for i, word in list(changes.items()):
            article = self._words[i - 1] if i else ""
            if i - 1 not in changes and article.lower() in ("a", "an"):
                changes[i - 1] = article[0] + ("n" if word[0].lower() in "aeiou" else "")
            if i == 0 and self._words[0][0].isupper():
                changes[0] = word[0].upper() + word[1:]
        parts, end = [], 0
        for i, word in sorted(changes.items()):
            parts += [self._text[end : self._spans[i][0]], word]
            end = self._spans[i][1]
        return "".join([*parts, self._text[end:]])

    def _plain(self, i: int) -> str:
        word = self._words[i]
        return word if i or self.tags[i].startswith("NNP") or word == "I" else word[0].lower() + word[1:]

    def reordered(self) -> list[str]:
        """Write the text with two words exchanged, up to MOST times."""
        pairs = list(combinations(self.content, 2))
        nouns = [pair for pair in pairs if all(self._classes[i] == "noun" for i in pair)]
        verbs = [
            (i, j) for i, j in pairs if self._classes[i] == self._classes[j] == "verb" and self.tags[i] == self.tags[j]
        ]
        if not nouns and not verbs:
            others = [i for i, tag in enumerate(self.tags) if tag in ("PRP", "JJ", "VBG") and self._words[i].isalpha()]
            heads = [i for i in self.content if self._classes[i] == "noun"]
            nouns = [(min(i, j), max(i, j)) for i in heads for j in others]

        def order(pair: tuple[int, int]) -> tuple[bool, bool, int, int]:
            i, j = pair
            return self.tags[i] != self.tags[j], j - i == 1, j - i, i

        chosen = [*sorted(verbs, key=order)[:2], *sorted(nouns, key=order)]
        texts = [self._replaced({i: self._plain(j), j: self._plain(i)}) for i, j in chosen]
        return [text for text in dict.fromkeys(texts) if text != self._text][:MOST]

    def masked(self, blank: bool) -> list[str]:
        """Write the text without each of its content words in turn."""
        return [self._replaced({i: "___" if blank else self._neutral(i)}) for i in self.content]

    def _neutral(self, i: int) -> str:
        if self._classes[i] == "adjective":
            return "particular"
        if self.tags[i] == "NN":
            return "thing" if i and self.tags[i - 1] in _DETERMINERS else "something"
        return _MASKS[self.tags[i]]


class TrieModel:
    """A causal language model that reads a trie of texts at once: beginnings that texts share are computed once."""

    def __init__(self, model: str, dtype: str) -> None:
        self.identity, self._device, self._tokenizer, self._model = load_causal(model, dtype)
        self._root = self._tokenizer.bos_token_id or self._tokenizer.eos_token_id

    def score(self, groups: list[list[str]]) -> list[tuple[np.ndarray, int]]:
        """Return for each group the log-probabilities of its texts, and the tokens of its first text."""
        results: list[tuple[np.ndarray, int]] = []
        batch: list[list[list[int]]] = []
        n_nodes = 0
        for group in groups:
            ids = self._tokenizer(group, add_special_tokens=False)["input_ids"]
            size = len({tuple(tokens[: i + 1]) for tokens in ids for i in range(len(tokens))})
            if batch and n_nodes + size > _NODES:
                results += self._score_batch(batch)
                batch, n_nodes = [], 0
            batch.append(ids)
            n_nodes += size
        return results + (self._score_batch(batch) if batch else [])

    def _score_batch(self, batch: list[list[list[int]]]) -> list[tuple[np.ndarray, int]]:
        import torch

        nodes: dict[tuple[int, int], int] = {}
        tokens, parents, depths = [self._root], [0], [0]
        paths = []
        for ids in batch:
            for sequence in ids:
                path, node = [], 0
                for token in sequence:
                    key = node, token
                    if key not in nodes:
                        nodes[key] = len(tokens)
                        tokens.append(token)
                        parents.append(node)
                        depths.append(depths[node] + 1)
                    node = nodes[key]
                    path.append(node)
                paths.append(path)
        seen = np.zeros((len(tokens), len(tokens)), dtype=bool)
        for node, parent in enumerate(parents):
            seen[node] = seen[parent]
            seen[node, node] = True
        dtype = self._model.dtype
        mask = torch.zeros(seen.shape, dtype=dtype).masked_fill_(torch.tensor(~seen), torch.finfo(dtype).min)
        with torch.inference_mode():
            logits = self._model(
                torch.tensor([tokens]), attention_mask=mask[None, None], position_ids=torch.tensor([depths])
            ).logits[0]
            logits = logits.float()
            chosen = logits[torch.tensor(parents), torch.tensor(tokens)] - logits.logsumexp(dim=1)[parents]
        steps = chosen.double().numpy()
        totals = iter([float(steps[path].sum()) for path in paths])
        return [(np.array([next(totals) for _ in ids]), len(ids[0])) for ids in batch]


class Store:
    """Measurements of texts, in a file that grows by a line for each.

    evaluated : texts, their variants included, and seconds of processor time in this run
    """

    def __init__(self, path: Path, model: str, dtype: str) -> None:
        self._path, self._given = path, (model, dtype)
        self._records: dict[str, dict[str, Any]] = {}
        if path.exists():
            self._records = {record["text"]: record for _, record in read_objects(path)}
        self._model: TrieModel | None = None
        self._evaluated = np.zeros(3)

    def measure(self, texts: list[str], fields: tuple[str, ...]) -> None:
        """Measure the texts that are not in the file."""
        new = [text for text in dict.fromkeys(texts) if text not in self._records]
        if not new:
            return
        if self._model is None:
            self._model = TrieModel(*self._given)
        start = time.process_time()
        written = []
        for text in new:
            words = Words(text)
            texts_of = {"reordered": words.reordered(), "word": words.masked(False), "blank": words.masked(True)}
            written.append({name: texts_of[name] for name in fields})
        groups = [
            [text, *(other for others in of_text.values() for other in others)]
            for text, of_text in zip(new, written, strict=True)
        ]
        scored = self._model.score(groups)
        self._evaluated += [len(new), sum(map(len, groups)), time.process_time() - start]
        with self._path.open("a", encoding="utf-8") as file:
            for text, of_text, (totals, tokens) in zip(new, written, scored, strict=True):
                record: dict[str, Any] = {"text": text, "tokens": tokens, "log_probability": totals[0]}
                rest = iter((totals[1:] - totals[0]).tolist())
                record |= {name: [next(rest) for _ in others] for name, others in of_text.items()}
                self._records[text] = record
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
        speed = self._evaluated[:2] / self._evaluated[2]
        print(
            f"{len(self._records)} texts; {speed[0]:.2f} texts, {speed[1]:.2f} with variants, in a second of "
            "processor time",
            file=sys.stderr,
            flush=True,
        )

    def rate(self, texts: list[str], variants: list[str]) -> dict[str, np.ndarray]:
        """Rate texts; for each variant an ndarray of shape (n,)."""
        return {name: np.array([_rating(self._records[text], name) for text in texts]) for name in variants}

    def without(self, texts: list[str], field: str) -> int:
        """Count the texts that have no variants."""
        return sum(not self._records[text][field] for text in texts)


def _rating(record: dict[str, Any], name: str) -> float:
    kind, how = name.split(", ")
    if kind in ("word", "blank"):
        differences = -np.array(record[kind])
        if not len(differences):
            return 0.0
        return float(differences.min() if how == "lowest" else differences.mean())
    differences = np.array(record["reordered"])
    if not len(differences):
        return 0.0
    other = differences.max() if kind == "max" else np.logaddexp.reduce(differences) - np.log(len(differences))
    return float(-other / (max(record["tokens"], 1) if how == "per token" else 1))


def read_rated(path: Path) -> tuple[list[str], np.ndarray]:
    """Draw sentences that an instruct model has rated, half of them above 0.5."""
    records = [record for _, record in read_objects(path) if record["kind"] in RATED_KINDS]
    texts: list[str] = []
    for sensible in (True, False):
        candidates = sorted({record["text"] for record in records if (record["asked"] > 0.5) == sensible})
        texts += np.random.default_rng(0).permutation(np.array(candidates, dtype=object))[:N_RATED].tolist()
    return texts, np.repeat([1, 0], N_RATED)


def _measured_sets(folder: Path, concepts: int) -> tuple[list[Kinds], list[list[str]]]:
    """Read the sets of KINDS."""
    kinds, sets = read_sets(folder, concepts)
    texts: list[list[str]] = []
    reduced = []
    for generator in kinds:
        numbers = {}
        for name in KINDS:
            start = len(texts)
            texts += [sets[i] for i in generator.numbers[name]]
            numbers[name] = np.arange(start, len(texts))
        reduced.append(generator._replace(numbers=numbers))
    return reduced, texts


def _batches(kinds: list[Kinds], sets: list[list[str]], names: tuple[str, ...]) -> Iterator[list[str]]:
    for start in range(0, max(len(generator.numbers[ORIGINAL]) for generator in kinds), _AT_ONCE):
        yield [
            text
            for generator in kinds
            for name in names
            for i in generator.numbers[name][start : start + _AT_ONCE]
            for text in sets[i]
        ]


def _fit(own: np.ndarray, labels: np.ndarray, texts: np.ndarray) -> tuple[np.ndarray, float]:
    """Fit a logistic regression to our own pairs; returns probabilities of texts, and its AUC, cross-fitted by pair."""
    model = make_pipeline(StandardScaler(), LogisticRegression())
    groups = np.tile(np.arange(len(labels) // 2), 2)
    crossed = cross_val_predict(model, own, labels, groups=groups, cv=GroupKFold(10), method="predict_proba")
    model.fit(own, labels)
    print(f"coefficients {model[-1].coef_[0].round(2).tolist()} of the standardized features", file=sys.stderr)
    return model.predict_proba(texts)[:, 1], float(roc_auc_score(labels, crossed[:, 1]))


def _log_odds(asked: np.ndarray) -> np.ndarray:
    clipped = np.clip(asked, 1e-6, 1 - 1e-6)
    return np.log(clipped / (1 - clipped))


def _percent(result: dict[str, Any]) -> str:
    value = result["share"] if "share" in result else result["auc"]
    low, high = result["interval"]
    return f"{100 * value:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def _print_own(store: Store, rated: Path) -> None:
    own_texts, labels = read_own()
    rated_texts, above = read_rated(rated)
    fields = ("reordered", "word", "blank")
    for texts in (own_texts, rated_texts):
        for start in range(0, len(texts), 20):
            store.measure(texts[start : start + 20], fields)
    table = [["rating", "own pairs", "rated sentences", "mean"]]
    for form, variants in VARIANTS.items():
        own, others = (store.rate(texts, list(variants)) for texts in (own_texts, rated_texts))
        for name in variants:
            areas = [roc_auc_score(labels, own[name]), roc_auc_score(above, others[name])]
            table.append([f"{form}: {name}", *(f"{100 * area:.1f}" for area in [*areas, np.mean(areas)])])
    shortness = [
        roc_auc_score(classes, [-len(text.split()) for text in texts])
        for texts, classes in ((own_texts, labels), (rated_texts, above))
    ]
    table.append(["rule: shorter text", *(f"{100 * area:.1f}" for area in [*shortness, np.mean(shortness)])])
    print("\n".join(markdown_table(table)))
    for field in fields:
        print(f"without {field}: {store.without([*own_texts, *rated_texts], field)} of {len(own_texts + rated_texts)}")


def _make_raters(
    store: Store, asked: dict[str, dict[str, Any]], sets: list[list[str]]
) -> tuple[list[Rater], dict[str, float]]:
    texts = list(dict.fromkeys(text for members in sets for text in members))
    own_texts, labels = read_own()
    chosen = [CHOSEN[form] for form in VARIANTS]
    relative, own = store.rate(texts, chosen), store.rate(own_texts, chosen)
    ratings: dict[str, np.ndarray] = {}
    areas: dict[str, float] = {}
    answers, own_answers = (np.array([asked[text]["asked"] for text in of]) for of in (texts, own_texts))
    for form, name in CHOSEN.items():
        title = f"{form}: {name}"
        ratings[title], _ = _fit(own[name][:, None], labels, relative[name][:, None])
        areas[title] = float(roc_auc_score(labels, own[name]))
    for form, name in CHOSEN.items():
        title = f"asked and {form}"
        features = np.stack([_log_odds(own_answers), own[name]], axis=1)
        ratings[title], areas[title] = _fit(features, labels, np.stack([_log_odds(answers), relative[name]], axis=1))
    ratings["asked"], areas["asked"] = answers, float(roc_auc_score(labels, own_answers))

    def per_token(of: list[str]) -> np.ndarray:
        return np.exp([asked[text]["log_probability"] / max(asked[text]["tokens"], 1) for text in of])

    ratings["likelihood"], areas["likelihood"] = per_token(texts), float(roc_auc_score(labels, per_token(own_texts)))
    raters = []
    for name, values in ratings.items():
        rated = dict(zip(texts, values.tolist(), strict=True))
        raters.append(Rater(name, [np.array([rated[text] for text in members]) for members in sets], name))
    raters += [gruen_rater(sets, load("gruen"), ROOT / "build" / "embeddings"), shortness_rater(sets)]
    return raters, areas


def print_tables(kinds: list[Kinds], sets: list[list[str]], raters: list[Rater], own: dict[str, float]) -> None:
    """Print the AUC of each rating, and how often its weighted Vendi score ranks the originals above."""
    names = [generator.name for generator in kinds]
    table = [["AUC × 100", "own pairs", *names]]
    for rater in raters:
        areas = [_percent(auc_by_kind(generator, rater.ratings)["nonsensical"]) for generator in kinds]
        table.append([rater.name, f"{100 * own[rater.name]:.1f}" if rater.name in own else "", *areas])
    print("\n".join(markdown_table(table)))
    texts = [text for members in sets for text in members]
    encoded = encode_texts(texts, Scoring(cache_dir=ROOT / "build" / "embeddings"))
    rows = [row for row in embedding_rows(sets, encoded) if row.name == VENDI]
    for rater in raters:
        rows += [row for row in quality_rows(sets, encoded, rater) if row.name.endswith(f"× {VENDI}")]
    rows += [row for row in rule_rows(sets) if row.name == "rule: shorter set"]
    for kind in KINDS[1:]:
        table = [[f"original above {POORER[kind]}, %", *names]]
        table += [[row.name, *(_percent(originals_above(generator, row)[kind]) for generator in kinds)] for row in rows]
        print("\n" + "\n".join(markdown_table(table)))


@command
def main() -> None:
    """Run the command."""
    parser = make_parser(__doc__)
    parser.add_argument("--model", required=True, help="language model: a folder, a GGUF file, an id of the Hub")
    parser.add_argument("--dtype", choices=DTYPES, default=DTYPES[0], help="of the model")
    parser.add_argument("--concepts", type=int, default=30, help="number of concepts of each generator")
    parser.add_argument("--measured", type=Path, required=True, help="answers and likelihoods of the same texts")
    parser.add_argument("--rated", type=Path, required=True, help="sentences that an instruct model has rated")
    parser.add_argument("--ratings", type=Path, required=True, metavar="FOLDER", help="where to keep measurements")
    parser.add_argument("--own", action="store_true", help="measure our own sentences only")
    arguments = parser.parse_args()
    arguments.ratings.mkdir(parents=True, exist_ok=True)
    store = Store(arguments.ratings / "relative.jsonl", arguments.model, arguments.dtype)
    if arguments.own:
        _print_own(store, arguments.rated)
        return
    fields = ("reordered", CHOSEN["masked"].split(", ")[0])
    kinds, sets = _measured_sets(data_folder(parser) / "diversity_sets", arguments.concepts)
    # A run that is short of time has the nonsense, then the paraphrases of llama3, which decide: only there does
    # asking alone rank the originals above Para-3 less often than `gruen`.
    for texts in _batches(kinds, sets, KINDS[:2]):
        store.measure(texts, fields)
    for generator in sorted(kinds, key=lambda generator: generator.name != "llama3"):
        for texts in _batches([generator], sets, KINDS[2:]):
            store.measure(texts, fields)
    asked = {record["text"]: record for _, record in read_objects(arguments.measured)}
    raters, own = _make_raters(store, asked, sets)
    print_tables(kinds, sets, raters, own)
    texts = [text for members in sets for text in members]
    for field in fields:
        print(f"without {field}: {store.without(texts, field)} of {len(texts)}")


if __name__ == "__main__":
    raise SystemExit(main())
