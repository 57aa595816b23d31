"""Evaluate all metrics: results that are strictly valid JSON, from which the tables and pictures are made."""

from typing import Any

import numpy as np

from text_metrics.commands.meta_eval.agreement import (
    JUDGE,
    Row,
    agreements,
    cells,
    choices,
    kappa_by_group,
    kappas,
    rule_choices,
)
from text_metrics.commands.meta_eval.kinds import ORIGINAL, POORER, Kinds, originals_above
from text_metrics.commands.meta_eval.pairs import Pairs

_QUANTILES = {"p5": 0.05, "q1": 0.25, "median": 0.5, "q3": 0.75, "p95": 0.95}


def evaluate_metrics(pairs: Pairs, rows: list[Row], parity: bool) -> dict[str, Any]:
    """Compare all metrics with the judge, on all pairs and on those that are clear."""
    chosen = {row.name: choices(row, pairs, parity) for row in rows} | rule_choices(pairs)
    by_parity = {row.name: choices(row, pairs, parity=True) for row in rows} | rule_choices(pairs)
    groups = dict.fromkeys(chosen, "rule") | {row.name: row.group for row in rows}
    rules = tuple(name for name, group in groups.items() if group == "rule")
    of_row = {row.name: row for row in rows}
    masks = cells(pairs)
    by_cell = {name: agreements(chosen, pairs, where, rules) for name, where in masks.items()}
    clear = {
        name: by_cell[name] if pairs.clear[where].all() else agreements(chosen, pairs, where & pairs.clear, rules)
        for name, where in masks.items()
        if pairs.clear[where].any()
    }
    return {
        "cells": [
            {"name": name, "pairs": int(where.sum()), "clear": int((where & pairs.clear).sum())}
            for name, where in masks.items()
        ],
        "metrics": [
            {
                "name": name,
                "group": groups[name],
                "more_diverse": "lower" if name in of_row and of_row[name].sign < 0 else "higher",
                "signature": of_row[name].signature if name in of_row else "",
                "cells": {cell: results[name] for cell, results in by_cell.items()},
                "clear_cells": {cell: results[name] for cell, results in clear.items()},
                "accuracy_by_parity": {
                    cell: float((1 - np.abs(by_parity[name] - pairs.verdicts))[where].mean())
                    for cell, where in masks.items()
                },
            }
            for name in chosen
        ],
        "kappa": _kappa(pairs, chosen, groups),
        "distributions": distributions(rows, pairs.by_label()),
    }


def _kappa(pairs: Pairs, chosen: dict[str, np.ndarray], groups: dict[str, str]) -> dict[str, Any]:
    """Cohen's kappa over all pairs, and over those of each quality."""
    metrics = {JUDGE: pairs.verdicts.astype(float)}
    metrics |= {name: verdicts for name, verdicts in chosen.items() if not name.startswith("rule:")}
    masks = {"pooled": np.ones(len(pairs.first), dtype=bool)}
    masks |= {part: pairs.parts == part for part in ("high", "low") if (pairs.parts == part).any()}

    def of(where: np.ndarray, annotators: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {name: verdicts[where] for name, verdicts in annotators.items()}

    return {
        "names": list(metrics),
        "pairs": {part: int(where.sum()) for part, where in masks.items()},
        "matrices": {part: kappas(of(where, metrics)) for part, where in masks.items()},
        "groups": {
            part: kappa_by_group(of(where, chosen), groups, pairs.verdicts[where], pairs.concepts[where])
            for part, where in masks.items()
        },
    }


def evaluate_kinds(kinds: list[Kinds], rows: list[Row]) -> dict[str, Any]:
    """Say how often each metric ranks the original above the poorer kinds of the same concept."""
    return {
        "generators": [
            {"name": generator.name, "concepts": len(generator.numbers[ORIGINAL]), "left_out": generator.left_out}
            for generator in kinds
        ],
        "kinds": [name for name in POORER if any(name in generator.numbers for generator in kinds)],
        "metrics": [
            {
                "name": row.name,
                "signature": row.signature,
                "above": {generator.name: originals_above(generator, row) for generator in kinds},
            }
            for row in rows
        ],
    }


def labels_of_kinds(kinds: list[Kinds]) -> dict[str, list[int]]:
    """List the sets of each kind over all generators."""
    return {
        shown: np.concatenate([generator.numbers[name] for generator in kinds if name in generator.numbers]).tolist()
        for name, shown in {ORIGINAL: ORIGINAL, **POORER}.items()
        if any(name in generator.numbers for generator in kinds)
    }


def distributions(rows: list[Row], labels: dict[str, list[int]]) -> dict[str, dict[str, dict[str, float]]]:
    """Sum up the scores of the sets that bear each label: how many, mean, and quantiles as a box plot shows them."""
    by_metric: dict[str, dict[str, dict[str, float]]] = {}
    for row in rows:
        if row.name.startswith("rule:"):
            continue
        by_metric[row.name] = {}
        for label, members in labels.items():
            scores = row.scores[members]
            quantiles = zip(_QUANTILES, np.quantile(scores, list(_QUANTILES.values())).tolist(), strict=True)
            by_metric[row.name][label] = {"n": len(members), "mean": float(scores.mean()), **dict(quantiles)}
    return by_metric
