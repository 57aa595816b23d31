"""The metrics of this package, loaded by name: `text_metrics.load("vendi_embed")`."""

from pathlib import Path
from typing import Any

_HERE = Path(__file__).resolve().parent
# The build puts metrics/ and scripts/ beside this file; in a checkout they are beside its folder.
ROOT = _HERE if (_HERE / "metrics").is_dir() else _HERE.parent
METRICS = ("chamfer_diversity", "gruen", "probeval", "self_bleu", "vendi_embed")


def load(name: str, **settings: Any) -> Any:
    """Load a metric by `evaluate.load`, from the installed folder.

    Parameters
    ----------
    name : one of METRICS
    **settings : passed to `evaluate.load`, such as `num_process` and `process_id`

    Returns
    -------
    evaluate.Metric

    Raises
    ------
    ValueError
        If there is no metric of this name.
    """
    if name not in METRICS:
        raise ValueError(f"name must be one of {', '.join(METRICS)}. Got {name!r}.")
    import evaluate

    return evaluate.load(str(ROOT / "metrics" / name), **settings)
