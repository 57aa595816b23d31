"""The command `text-metrics`: runs a script of the repository from any folder."""

import importlib
import sys
from collections.abc import Sequence

from text_metrics import ROOT

COMMANDS = {
    "score": "score a file of texts, of any size",
    "compare": "compare two systems",
    "choose": "choose a diverse subset of texts",
    "meta-eval": "evaluate metrics of diversity on pairs of sets",
    "probe": "ask a model questions, and compare its answers with people's",
    "judge-diversity": "have a chat model rate the diversity of pairs of sets",
    "candidate-sets": "make pairs of sets, with paraphrases and nonsense",
    "rate-quality": "rate texts by a language model",
}


def main(words: Sequence[str] | None = None) -> int:
    """Run the command.

    Returns
    -------
    int
        The exit code of the script; 2 for an unknown command.
    """
    name, *options = (sys.argv[1:] if words is None else words) or ["--help"]
    if name in ("-h", "--help"):
        print(f"usage: text-metrics COMMAND ...\n\n{_listed()}\n\nOptions: text-metrics COMMAND --help")
        return 0
    if name not in COMMANDS:
        print(f"text-metrics: there is no command {name!r}. The commands are:\n{_listed()}", file=sys.stderr)
        return 2
    # The scripts import each other and metrics/_core from their root.
    sys.path.insert(0, str(ROOT))
    sys.argv = [f"text-metrics {name}", *options]
    return importlib.import_module(f"scripts.{name.replace('-', '_')}").main()


def _listed() -> str:
    return "\n".join(f"  {name:<16} {purpose}" for name, purpose in COMMANDS.items())


if __name__ == "__main__":
    raise SystemExit(main())
