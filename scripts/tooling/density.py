"""Count the statements that a reader has to unpack, per 1 000 lines of code, and check the rates of each room.

python -m scripts.tooling.density               print the rates; exit with 1 if one is above its limit
python -m scripts.tooling.density --list        print the places, too
"""

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from scripts import ROOT
from text_metrics.console import Parser

# An expression of more parts than this is crowded.
_MOST_PARTS = 30
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_STATEMENTS = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Expr, ast.Raise, ast.Assert)
_PARTS = (ast.Name, ast.Constant, ast.BinOp, ast.BoolOp, ast.Compare, ast.Call, ast.Subscript)


class Rates(NamedTuple):
    """Places per 1 000 lines of code.

    packed : statements that assign several values at once; swaps and constants do not count
    nested : comprehensions in comprehensions, and conditional expressions in conditional expressions
    crowded : statements of more than 30 names, constants, calls and operations
    starred : calls and displays with more than one unpacking
    """

    packed: float
    nested: float
    crowded: float
    starred: float


PRODUCT = Rates(packed=3, nested=2, crowded=3.5, starred=4)
TESTS = Rates(packed=5, nested=3, crowded=4, starred=6)
ROOMS = dict.fromkeys(("metrics/_core", "metrics", "text_metrics", "spaces", "scripts"), PRODUCT) | {"tests": TESTS}


def files_of(room: str) -> list[Path]:
    """List the Python files of a room, without generated ones; `metrics` excludes `_core`."""
    paths = sorted((ROOT / room).rglob("*.py"))
    if room != "metrics":
        return paths
    return [path for path in paths if path.parent.name != "_core" and path.name != "core.py"]


def find_places(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Find the kind and the line of each place of a module."""
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Assign) and _is_packed(node):
            yield "packed", line
        for kinds in (_COMPREHENSIONS, ast.IfExp):
            if isinstance(node, kinds) and _count(node, kinds) > 1:
                yield "nested", line
        if isinstance(node, _STATEMENTS) and not _is_text(node) and _count(node, _PARTS) > _MOST_PARTS:
            yield "crowded", line
        if _unpackings(node) > 1:
            yield "starred", line


def _is_packed(node: ast.Assign) -> bool:
    """Tell whether a statement assigns several values that it lists; swaps and constants are excepted."""
    target = node.targets[0]
    if not isinstance(node.value, ast.Tuple) or not isinstance(target, ast.Tuple):
        return False
    names = {ast.unparse(name) for name in target.elts}
    values = {ast.unparse(value) for value in node.value.elts}
    is_constant = all(isinstance(value, ast.Constant) for value in node.value.elts)
    return names != values and not is_constant


def _count(node: ast.AST, kinds: Any) -> int:
    """Count the nodes of these kinds, from this one on."""
    return sum(isinstance(part, kinds) for part in ast.walk(node))


def _is_text(node: ast.AST) -> bool:
    """Tell whether a statement is a docstring."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _unpackings(node: ast.AST) -> int:
    """Count the unpackings of a call or a display."""
    if isinstance(node, ast.Call):
        positional = sum(isinstance(argument, ast.Starred) for argument in node.args)
        return positional + sum(keyword.arg is None for keyword in node.keywords)
    if isinstance(node, (ast.List, ast.Tuple)):
        return sum(isinstance(element, ast.Starred) for element in node.elts)
    return node.keys.count(None) if isinstance(node, ast.Dict) else 0


def count_lines(source: str, tree: ast.AST) -> int:
    """Count the lines of code: no blank lines, comments and docstrings."""
    lines = source.splitlines()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and _is_text(node):
            end = node.end_lineno or node.lineno
            lines[node.lineno - 1 : end] = [""] * (end - node.lineno + 1)
    return sum(bool(line.strip()) and not line.strip().startswith("#") for line in lines)


def measure(room: str) -> tuple[Rates, list[str]]:
    """Return the rates of a room, and its places as lines of text."""
    counts = Counter[str]()
    n_lines = 0
    places = []
    for path in files_of(room):
        source = path.read_text(encoding="utf-8")
        tree = ast.parse(source)
        n_lines += count_lines(source, tree)
        for kind, line in sorted(find_places(tree)):
            counts[kind] += 1
            places.append(f"{kind}  {path.relative_to(ROOT)}:{line}: {source.splitlines()[line - 1].strip()}")
    return Rates(*(1000 * counts[kind] / max(n_lines, 1) for kind in Rates._fields)), places


def main() -> int:
    """Run the command."""
    parser = Parser(__doc__)
    parser.add_argument("--list", action="store_true", help="print the places, too")
    is_listed = parser.parse_args().list
    exceeded = []
    for room, limits in ROOMS.items():
        rates, places = measure(room)
        print(f"{room:16}" + "".join(f"{kind} {rate:5.1f}  " for kind, rate in rates._asdict().items()))
        if is_listed:
            print("\n".join(places))
        for kind, rate, limit in zip(Rates._fields, rates, limits, strict=True):
            if rate > limit:
                exceeded.append(f"{room}: {rate:.1f} {kind} places per 1 000 lines of code, the limit is {limit:g}")
    for line in exceeded:
        print(line, file=sys.stderr)
    return 1 if exceeded else 0


if __name__ == "__main__":
    raise SystemExit(main())
