"""Make questions about the open slots of sentences: missing roles of their predicates, and circumstances.

    text-metrics probe frames parsed.amr --rolesets propbank-frames/frames --out questions.jsonl
    text-metrics probe frames commongen.jsonl --parse amr-model --rolesets frames --per-context 2 --out questions.jsonl

A sentence comes with its graph: Abstract Meaning Representation in PENMAN notation, with `# ::snt` and `# ::id`. For
each predicate, a question is asked about each role that PropBank declares and the sentence lacks, and about where,
when, why, how and with what it happens, unless the sentence says so (Every Answer Matters, section 3). A graph that is
not valid is named and skipped; the exit code is then 3.
"""

import random
import re
import sys
from collections.abc import Iterator, Sequence
from itertools import chain, groupby
from pathlib import Path
from xml.etree import ElementTree

from text_metrics.console import EXIT_BAD_ROWS
from text_metrics.core_api import parse_count
from text_metrics.files.rows import read_rows
from text_metrics.files.storage import check_outputs, open_file, write_jsonl, write_text
from text_metrics.probe.clauses import CIRCUMSTANCES, PREDICATE, Graph, Roleset, question

ROLES = tuple(f"ARG{n}" for n in range(7))
# From this sense on, a concept is a relation of AMR's own, such as have-rel-role-91, not an event.
_RELATIONS = 90
# The first line of a file of parsed graphs: only a file that has it is replaced.
_PARSED = "# Parsed by text-metrics probe frames."


def run(
    sentences: Path,
    rolesets: Path,
    out: Path,
    people: Path | None = None,
    keep: Sequence[str] | None = None,
    per_context: int | None = None,
    seed: int = 0,
    parse: str | None = None,
) -> int:
    """Write questions; returns the exit code. Parameters are the options of the command."""
    if per_context is not None:
        parse_count(per_context, "--per-context")
    graphs = out.with_name(f"{out.name}.amr") if parse else sentences
    check_outputs([sentences, rolesets], [out, people, graphs if parse else None])
    known = read_rolesets(rolesets)
    if parse:
        if graphs.exists() and not _read(graphs).startswith(_PARSED):
            raise ValueError(f"{graphs} is not a file of this command, and would be replaced: choose another --out.")
        write_text(graphs, _parse(sentences, parse))
    rows: list[dict[str, str]] = []
    unknown: set[str] = set()
    n_contexts = 0
    n_bad = 0
    for where, block in _blocks(_read(graphs)):
        try:
            graph = read_graph(block)
        except ValueError as error:
            n_bad += 1
            print(f"{graphs}, {where}: {error}", file=sys.stderr)
            continue
        n_contexts += 1
        slots = open_slots(graph, known, unknown)
        if keep:
            slots = [row for row in slots if row["slot"] in keep]
        if per_context is not None and len(slots) > per_context:
            drawn = random.Random(f"{seed} {graph.name}").sample(range(len(slots)), per_context)
            slots = [slots[i] for i in sorted(drawn)]
        rows += slots
    if not rows:
        raise ValueError(f"{sentences} gives no question: {n_contexts} graphs are valid, {n_bad} are not.")
    write_jsonl(out, rows)
    if people:
        # Its import takes a second.
        from pandas import DataFrame

        columns = ["id", "sentence", "question", "answer"]
        write_text(people, DataFrame(rows).reindex(columns=columns).to_csv(index=False))
    print(f"{out}: {len(rows)} questions about {n_contexts} sentences; {n_bad} graphs are skipped.", file=sys.stderr)
    if unknown:
        names = ", ".join(sorted(unknown))
        print(f"No question is asked about predicates without a roleset: {names}.", file=sys.stderr)
    return EXIT_BAD_ROWS if n_bad else 0


def open_slots(graph: Graph, rolesets: dict[str, Roleset], unknown: set[str]) -> list[dict[str, str]]:
    """Ask about each open slot of each predicate; adds predicates without a roleset to `unknown`."""
    rows = []
    for variable, concept in graph.concepts.items():
        match = PREDICATE.fullmatch(concept)
        if match is None or int(match["sense"]) > _RELATIONS:
            continue
        roleset = rolesets.get(concept)
        if roleset is None:
            unknown.add(concept)
            continue
        filled = graph.roles(variable)
        for slot in chain(roleset.roles, CIRCUMSTANCES):
            if slot not in filled:
                row = {"id": f"{graph.name}.{variable}.{slot}", "sentence": graph.sentence}
                text = question(graph, variable, roleset, slot)
                rows.append({**row, "question": text, "slot": slot, "frame": concept})
    return rows


def read_rolesets(folder: Path) -> dict[str, Roleset]:
    """Read PropBank's rolesets, such as go-02, from the XML files in a folder."""
    rolesets = {}
    for path in sorted(folder.rglob("*.xml")):
        try:
            tree = ElementTree.parse(path)
        except (ElementTree.ParseError, OSError) as error:
            raise ValueError(f"{path} is not valid XML: {error}.") from None
        for element in tree.iter("roleset"):
            roles = {
                f"ARG{role.get('n')}": (role.get("descr") or "").strip()
                for role in element.iter("role")
                if (role.get("n") or "").isdigit()
            }
            parts = {alias.get("pos") or "v" for alias in element.iter("alias")} or {"v"}
            part = next((kind for kind in "vjn" if kind in parts), "v")
            name = re.sub(r"[._]", "-", element.get("id") or "")
            rolesets[name] = Roleset(dict(sorted(roles.items())), part)
    if not rolesets:
        raise ValueError(f"--rolesets {folder} holds no XML files with rolesets of PropBank.")
    return rolesets


def read_graph(block: str) -> Graph:
    """Read a graph with its sentence; raises a ValueError that says what is wrong."""
    import penman
    from penman.exceptions import PenmanError
    from penman.models.amr import model

    plain = re.sub(r'"[^"]*"|^#.*$', "", block, flags=re.MULTILINE).strip()
    if plain.count("(") != plain.count(")") or not plain.endswith(")"):
        raise ValueError("is not valid PENMAN notation: its parentheses do not match")
    try:
        graphs = list(penman.iterdecode(block, model=model))
    except PenmanError as error:
        raise ValueError(f"is not valid PENMAN notation: {' '.join(str(error).split())}") from None
    if len(graphs) != 1:
        raise ValueError(f"holds {len(graphs)} graphs: one is expected, with blank lines around it")
    graph = graphs[0]
    metadata = graph.metadata
    sentence = (metadata.get("snt") or metadata.get("tok") or "").strip()
    if not sentence:
        raise ValueError("has no sentence, '# ::snt'")
    concepts = {triple.source: triple.target for triple in graph.instances()}
    for variable, concept in concepts.items():
        if concept is None:
            raise ValueError(f"variable {variable!r} has no concept")
    edges = [
        (source, role.removeprefix(":"), target)
        for source, role, target in graph.triples
        if role != ":instance" and target is not None
    ]
    # A circumstance may be a node of its own: be-located-at-91 is a location.
    for slot in CIRCUMSTANCES:
        for concept, inside, outside in model.reifications.get(f":{slot}", ()):
            for variable in [variable for variable, its in concepts.items() if its == concept]:
                roles = {role: target for source, role, target in edges if source == variable}
                ends = roles.get(inside.removeprefix(":")), roles.get(outside.removeprefix(":"))
                if None not in ends:
                    edges.append((ends[0], slot, ends[1]))
    name = (metadata.get("id") or "").split()
    return Graph(name[0] if name else sentence, sentence, concepts, edges)


def _read(path: Path) -> str:
    with open_file(path) as file:
        try:
            return file.read().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} is not UTF-8: {error}.") from None


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield the blocks between blank lines, each with its place, except comments."""
    numbered = enumerate(text.splitlines(), 1)
    for is_blank, group in groupby(numbered, lambda line: not line[1].strip()):
        numbers, lines = zip(*group, strict=True)
        if not is_blank and any("::snt" in line or not line.startswith("#") for line in lines):
            block = "\n".join(lines)
            identity = re.search(r"::id\s+(\S+)", block)
            yield f"line {numbers[0]}{f', {identity[1]}' if identity else ''}", block


def _parse(path: Path, model: str) -> str:
    """Parse the sentences of CommonGen's JSON lines, under `scene` or `target`, by amrlib."""
    import amrlib

    sentences: list[str] = []
    for where, record in read_rows(path):
        scene = record.get("scene", record.get("target"))
        texts = [scene] if isinstance(scene, str) else scene
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise ValueError(f"{where} must have 'scene', a list of sentences, or 'target'. Got {scene!r:.80}.")
        sentences += [" ".join(text.split()) for text in texts]
    blocks = [_PARSED]
    graphs = amrlib.load_stog_model(model_dir=model).parse_sents(sentences, add_metadata=False)
    for i, (sentence, graph) in enumerate(zip(sentences, graphs, strict=True), 1):
        blocks.append(f"# ::id s{i}\n# ::snt {sentence}\n{graph or ''}".rstrip())
    return "\n\n".join(blocks) + "\n"
