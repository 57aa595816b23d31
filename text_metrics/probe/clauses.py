"""Questions in words about the slots of a predicate."""

import re
from collections.abc import Mapping
from typing import NamedTuple

# Circumstances that AMR does not number, and how the question about each begins.
CIRCUMSTANCES = {
    "location": "Where would",
    "time": "When would",
    "cause": "What would make",
    "purpose": "Why would",
    "manner": "How would",
    "instrument": "With what would",
}
PREDICATE = re.compile(r"(?P<lemma>.+)-(?P<sense>\d\d+)")
_OBJECTS = {"i": "me", "we": "us", "he": "him", "she": "her", "they": "them", "you": "you", "it": "it"}
# Of phrases in phrases.
_DEEPEST = 4


class Roleset(NamedTuple):
    """The entry of a predicate in PropBank.

    roles : descriptions by name, such as ARG0
    part : of speech: v, j (adjective) or n
    """

    roles: Mapping[str, str]
    part: str


class Graph(NamedTuple):
    """A sentence and its meaning: concepts by variable, and edges of source, role and target, none inverse."""

    name: str
    sentence: str
    concepts: dict[str, str]
    edges: list[tuple[str, str, str]]

    def roles(self, variable: str) -> dict[str, str]:
        """Return the first filler of each role of a predicate."""
        return {role: target for source, role, target in reversed(self.edges) if source == variable}


def question(graph: Graph, variable: str, roleset: Roleset, slot: str) -> str:
    """Ask about a slot of a predicate, such as "Where would the model go?"."""
    filled = graph.roles(variable)
    # The subject of such verbs as "arrive" and "fall" is ARG1.
    first = next((role for role in ("ARG0", "ARG1") if role in roleset.roles or role in filled), "ARG0")
    subject = phrase(graph, filled[first]) if first in filled else "someone"
    lemma = PREDICATE.sub(r"\g<lemma>", graph.concepts[variable]).replace("-", " ")
    verb = {"v": "", "j": "be ", "n": "take part in the "}[roleset.part] + lemma
    if filled.get("polarity") == "-":
        verb = f"not {verb}"
    thing = phrase(graph, filled["ARG1"], as_object=True) if first == "ARG0" and "ARG1" in filled else ""
    if slot in CIRCUMSTANCES:
        words = [CIRCUMSTANCES[slot], subject, verb, thing]
        if slot == "cause":
            words[1] = phrase(graph, filled[first], as_object=True) if first in filled else subject
            words[2] = verb.removeprefix("be ")
    elif slot == first:
        words = ["Who or what would", verb, thing]
    elif slot == "ARG1":
        words = ["Who or what would", subject, verb]
    else:
        described = re.split(r"[,;(/]", roleset.roles[slot])[0].strip() or f"{slot} of {verb}"
        words = [f"What would be the {described} if", subject, "were to", verb, thing]
    return f"{' '.join(word for word in words if word)}?"


def phrase(graph: Graph, variable: str, as_object: bool = False, depth: int = 0) -> str:
    """Return the words of a variable: a name, a pronoun, a coordination, or a noun with its modifiers."""
    concept = graph.concepts.get(variable)
    if concept is None:
        return variable.strip('"')
    if concept in _OBJECTS:
        subject = "I" if concept == "i" else concept
        return _OBJECTS[concept] if as_object else subject
    edges = [(role, target) for source, role, target in graph.edges if source == variable]
    names = [target for role, target in edges if role == "name"]
    parts = [(role, target) for role, target in edges if re.fullmatch(r"op\d+", role)]
    if names:
        ops = [edge for edge in graph.edges if edge[0] == names[0] and edge[1].startswith("op")]
        return " ".join(target.strip('"') for _, _, target in ops)
    if concept in ("and", "or") and parts and depth < _DEEPEST:
        return f" {concept} ".join(phrase(graph, target, as_object, depth + 1) for _, target in parts)
    match = PREDICATE.fullmatch(concept)
    if match:
        return f"to {match['lemma'].replace('-', ' ')}"
    modifiers = [graph.concepts.get(target, target) for role, target in edges if role == "mod"]
    words = [PREDICATE.sub(r"\g<lemma>", word).strip('"') for word in [*modifiers, concept]]
    return f"the {' '.join(words)}".replace("-", " ")
