r"""Train the component `sense` of `gruen`: a small model learns an instruct model's answers about many sentences.

    export NLTK_DATA=DATA/nltk_data
    python -m scripts.training.train_sense --text DATA/text --cola DATA/gruen --dtype bfloat16 \
        --model Qwen/Qwen2.5-1.5B-Instruct --work FOLDER

The sentences are captions and sentences of public corpora, a third of them as they are and the others corrupted; and
sentences that the instruct model itself writes from the words of captions, plausible and nonsensical, each also with a
noun or a verb exchanged. The instruct model rates all of them as `text-metrics rate-quality --ask` does, which takes
hours. `--work` keeps what it wrote and rated, and a stopped run continues. Adapters over the compact backbone, and a
head, then learn the logits of the ratings. No released text is read. Printed are Spearman's correlation with the
ratings and the AUC against ratings above 0.5 on sentences that were held out, and the AUC on our own pairs in
`sense_pairs.jsonl`.
"""

import json
import random
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from nltk.tag import PerceptronTagger
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

from scripts import ROOT
from scripts.training.choose_question import PAIRS
from scripts.training.gruen.corpora import split_words
from scripts.training.gruen.corpus import Corpus, read_corpus
from scripts.training.gruen.sense import SenseCorruptor, noun_classes
from scripts.training.gruen.sense_trainer import Rated, SenseTrainer
from scripts.training.gruen.writing import draw_words, write
from text_metrics.commands.rate_quality.asking import SENSE, AskedModel
from text_metrics.commands.shared.causal import DTYPES, CausalModel, load_causal
from text_metrics.commands.shared.command import command, make_parser
from text_metrics.commands.shared.files import read_objects
from text_metrics.commands.shared.outputs import check_outputs, module_files
from text_metrics.metrics.gruen.gruen import WEIGHTS
from text_metrics.metrics.gruen.gruen_compact import WEIGHTS_FILE
from text_metrics.metrics.gruen.gruen_sense import SENSE_FILE, Weights

CAPTIONS, PROSE = 9000, 6000
LONGEST = 20
WORDNET_SENTENCES = 20_000
# Every twelfth group of sentences is held out: those from one set of words, or a single one.
HELD_OUT = 12
_AT_ONCE = 256
_BEFORE_MARK = re.compile(r" ([,.;:!?%)])")


def read_journal(path: Path) -> list[dict[str, Any]]:
    """Read the records that an earlier run wrote; none if there was none."""
    return [record for _, record in read_objects(path)] if path.exists() else []


def append(path: Path, records: list[dict[str, Any]]) -> None:
    """Add records to a file of JSON lines."""
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def write_sentences(path: Path, model: CausalModel, captions: list[list[str]], most: int) -> None:
    """Let the model write sentences until the file has as many as wanted."""
    n = len(read_journal(path))
    if n >= most:
        return
    chance = random.Random(n)
    for written in write(model, draw_words(captions, PerceptronTagger().tag, chance), chance):
        append(path, [sentence._asdict() for sentence in written])
        n += len(written)
        print(f"{n} sentences written", flush=True)
        if n >= most:
            return


def list_sentences(corpus: Corpus, written: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the sentences to rate: the written ones, the same with words exchanged, and those of corpora, mixed."""
    chance = random.Random(0)
    prose = [words for words in corpus.sentences if 4 <= len(words) <= LONGEST]
    known = chance.sample(prose, min(len(prose), WORDNET_SENTENCES)) + corpus.captions
    exchange = SenseCorruptor(known, noun_classes(), PerceptronTagger().tag, 0)
    break_grammar = corpus.corruptor(0)
    yield from written
    for record in written:
        if corrupted := exchange.corrupt(split_words(record["text"])):
            yield {**record, "text": join(corrupted.words)}
    sentences = []
    for source, most in ((corpus.captions, CAPTIONS), (prose, PROSE)):
        for i, words in enumerate(chance.sample(source, min(len(source), most))):
            # A third as they are, a half with words exchanged, a sixth ungrammatical.
            corruptor = (None, exchange, break_grammar, None, exchange, exchange)[i % 6]
            corrupted = corruptor.corrupt(words) if corruptor else None
            if corruptor is None or (corrupted is not None and corrupted.words):
                sentences.append({"text": join(corrupted.words if corrupted else words)})
    chance.shuffle(sentences)
    yield from sentences


def join(words: list[str]) -> str:
    """Write words as a sentence."""
    return _BEFORE_MARK.sub(r"\1", " ".join(words)).replace("( ", "(").replace(" n't", "n't").replace(" '", "'")


def rate_sentences(path: Path, model: CausalModel, sentences: Iterable[dict[str, Any]], most: int) -> None:
    """Rate sentences until the file has as many ratings as wanted."""
    known = {record["text"] for record in read_journal(path)}
    different = {record["text"]: record for record in sentences}
    new = [record for text, record in different.items() if text not in known][: max(0, most - len(known))]
    asked = AskedModel(model, SENSE)
    for start in range(0, len(new), _AT_ONCE):
        records = new[start : start + _AT_ONCE]
        ratings = asked.rate([record["text"] for record in records])
        append(path, [{**record, "rating": value} for record, value in zip(records, ratings.tolist(), strict=True)])
        print(f"{len(known) + start + len(records)} sentences rated", flush=True)


def hold_out(records: list[dict[str, Any]]) -> tuple[list[Rated], list[Rated]]:
    """Split sentences into those to learn from and those held out; no set of words is in both."""
    group = {id(record): " ".join(record.get("words", [record["text"]])) for record in records}
    groups = sorted(set(group.values()))
    random.Random(0).shuffle(groups)
    held_out = set(groups[: len(groups) // HELD_OUT])
    sides: tuple[list[Rated], list[Rated]] = ([], [])
    for record in records:
        sides[group[id(record)] in held_out].append(Rated(record["text"], record["rating"]))
    return sides


def report(trainer: SenseTrainer, held_out: list[Rated]) -> None:
    """Print how well the model predicts the ratings that were held out, and tells our own pairs."""
    texts, ratings = map(list, zip(*held_out, strict=True))
    found = trainer.rate(texts)
    pairs = [record for _, record in read_objects(PAIRS)]
    own = trainer.rate([pair[side] for side in ("sensible", "nonsense") for pair in pairs])
    print(
        f"{len(texts)} sentences held out: Spearman's correlation {spearmanr(ratings, found)[0]:.3f}, AUC "
        f"{roc_auc_score(np.array(ratings) > 0.5, found):.3f}; own pairs: AUC "
        f"{roc_auc_score(np.repeat([1, 0], len(pairs)), own):.3f}",
        flush=True,
    )


@command
def main() -> None:
    """Write, rate, train and save."""
    parser = make_parser(__doc__)
    parser.add_argument("--text", type=Path, required=True, help="as for scripts/training/train_gruen_compact.py")
    parser.add_argument("--cola", type=Path, required=True)
    parser.add_argument("--model", required=True, help="instruct model: a folder, a GGUF file, an id of the Hub")
    parser.add_argument("--dtype", choices=DTYPES, default=DTYPES[0], help="of the instruct model")
    parser.add_argument("--work", type=Path, required=True, help="a folder that keeps sentences and ratings")
    parser.add_argument("--written", type=int, default=4000, help="sentences that the model writes")
    parser.add_argument("--rated", type=int, default=20_000, help="sentences that it rates")
    parser.add_argument("--out", type=Path, default=ROOT / "metrics/gruen" / SENSE_FILE)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    check_outputs([arguments.text, arguments.cola, *module_files(arguments.model)], [arguments.work, arguments.out])
    arguments.work.mkdir(parents=True, exist_ok=True)
    written, rated = arguments.work / "written.jsonl", arguments.work / "rated.jsonl"
    if len(read_journal(rated)) < arguments.rated:
        corpus = read_corpus(arguments.text, arguments.cola)
        model = load_causal(arguments.model, arguments.dtype)
        write_sentences(written, model, corpus.captions, arguments.written)
        rate_sentences(rated, model, list_sentences(corpus, read_journal(written)), arguments.rated)
    # The rounding of sums depends on the number of threads.
    torch.set_num_threads(1)
    learned, held_out = hold_out(read_journal(rated))
    backbone = Weights(ROOT / "metrics/gruen" / WEIGHTS_FILE, WEIGHTS[WEIGHTS_FILE])
    trainer = SenseTrainer(backbone, arguments.seed)
    trainer.train(learned)
    report(trainer, held_out)
    print(f"{arguments.out}: SHA-256 {trainer.save(arguments.out)}; put it into gruen.py")


if __name__ == "__main__":
    raise SystemExit(main())
