"""The server of a demo: Gradio's, with a bound on requests, and logs without visitors' texts."""

import contextlib
import inspect
import logging
import math
import os
import re
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gradio as gr
import uvicorn
from fastapi import FastAPI, HTTPException
from fastapi.responses import PlainTextResponse
from starlette.middleware.body_limit import RequestBodyLimitMiddleware

from .inputs import InputError
from .theme import SCRIPT, STYLE, theme

# Visitors that may wait; each waits at most 3 seconds for each of those before.
QUEUE = 40
# Connections; a visitor has several.
CONNECTIONS = 400
# Visitors whose result is remembered, so that they can still change its settings.
SESSIONS = 100
# Interval of the cleanup, and maximum age of uploads, in seconds.
DELETE_CACHE = (60, 300)
# Bytes of all uploads together.
MOST_UPLOADED = 50_000_000
# Routes of Gradio that a demo does not need; the first would keep a visitor's texts on disk, for anybody with the link.
REFUSED = ("/gradio_api/deep_link", "/gradio_api/openapi.json", "/openapi.json")
# Where a demo that is not on the Hub shows its metric card.
CARD = "/card"
README = Path(__file__).parents[1] / "README.md"
DEMOS = ("chamfer_diversity", "gruen", "probeval", "self_bleu", "semantic_entropy", "vendi_embed")

logger = logging.getLogger("demo")


class Demo(gr.Blocks):
    """Blocks whose events raise a gr.Error only: Gradio would log others with parts of the input."""

    async def process_api(self, block_fn: Any, inputs: list[Any], *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Process one event; settings that a call of the API leaves out have their defaults."""
        try:
            if getattr(block_fn, "api_name", None) == "score":
                inputs = completed(block_fn.fn, inputs)
            return await super().process_api(block_fn, inputs, *args, **kwargs)
        except Exception as error:
            raise shown_error(error) from None


def completed(function: Callable[..., Any], inputs: Sequence[Any]) -> list[Any]:
    """Return the arguments of a call with the defaults of those that it leaves out."""
    try:
        call = inspect.signature(function).bind(*inputs)
    except TypeError as error:
        raise InputError(f"“data” does not fit the parameters: {error}.") from None
    call.apply_defaults()
    return list(call.args)


def links(name: str, papers: Sequence[str], card: str) -> list[tuple[str, str]]:
    """Return text and address of the links of a page: the metric card, the papers, and on the Hub the other demos.

    card : the README of the Space; the README of a duplicate names its origin, whose owner has the others
    """
    short = [paper.partition("://")[2].replace("arxiv.org/abs/", "arXiv ") for paper in papers]
    space = os.environ.get("SPACE_ID", "")
    hub = "https://huggingface.co/spaces"
    origin = re.search(r"^duplicated_from: *([^\s/]+)", card, re.MULTILINE)
    owner = origin[1] if origin else space.partition("/")[0]
    found = [("Metric card", f"{hub}/{space}/blob/main/README.md" if space else CARD)]
    found += zip(short, papers, strict=True)
    if space:
        found += [(other, f"{hub}/{owner}/{other}") for other in DEMOS if other != name]
    return found


def sweep(folder: Path, age: float, most_bytes: int) -> None:
    """Remove files and empty folders that are older than the age, in seconds, and the oldest files beyond the bytes.

    Gradio removes finished uploads only: an aborted one has a temporary name.
    """
    now = time.time()
    left = most_bytes
    for path in sorted(folder.rglob("*"), key=_last_change, reverse=True):
        age_of_path = now - _last_change(path)
        with contextlib.suppress(OSError):
            if path.is_dir():
                if age_of_path > age:
                    # It fails if the folder has files.
                    path.rmdir()
                continue
            left -= path.stat().st_size
            if left < 0 or age_of_path > age:
                path.unlink()


def _last_change(path: Path) -> float:
    """Return the modification time of a file; infinity if it was removed."""
    with contextlib.suppress(OSError):
        return path.stat().st_mtime
    return math.inf


def _sweep_forever() -> None:
    folder = Path(os.environ.get("GRADIO_TEMP_DIR") or Path(tempfile.gettempdir()) / "gradio")
    interval, age = DELETE_CACHE
    while True:
        time.sleep(interval)
        sweep(folder, age, MOST_UPLOADED)


def shown_error(error: Exception) -> gr.Error:
    """Return the error that is shown to a visitor; an internal error is logged by its type and place in the code."""
    if isinstance(error, InputError):
        return gr.Error(str(error), print_exception=False)
    if isinstance(error, gr.Error):
        return gr.Error(error.message, print_exception=False)
    logger.error("%s", place_of(error))
    return gr.Error(
        f"Something went wrong on our side ({type(error).__name__}). Please try again.", print_exception=False
    )


def place_of(error: BaseException) -> str:
    """Return the type of an error and where it was raised, without its message, which may contain a visitor's text."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "unknown place"
    return f"{type(error).__name__} at {place}"


class PlaceFormatter(logging.Formatter):
    """Formats errors by their type and place."""

    def formatException(self, ei: Any) -> str:  # noqa: N802
        """Format an error."""
        return place_of(ei[1])


_LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"place": {"()": PlaceFormatter, "format": "%(levelname)s %(name)s: %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "place"}},
    "root": {"handlers": ["stderr"], "level": "WARNING"},
    "loggers": {"uvicorn": {"level": "INFO"}},
}


def _refuse() -> None:
    raise HTTPException(404)


def serve(demo: Demo, file_bytes: int) -> None:
    """Serve the page until the process ends."""
    # Warnings of a run are shown to its visitor; others may contain a visitor's words.
    warnings.simplefilter("ignore", UserWarning)
    demo.queue(max_size=QUEUE, default_concurrency_limit=1, api_open=False)
    demo.state_session_capacity = SESSIONS
    app = FastAPI(openapi_url=None)
    for path in REFUSED:
        app.add_api_route(path, _refuse, methods=["GET", "POST"])
        app.add_api_route(f"{path}/", _refuse, methods=["GET", "POST"])
    # Without the front matter.
    app.add_api_route(CARD, lambda: PlainTextResponse(README.read_text(encoding="utf-8").partition("\n---\n")[2]))
    threading.Thread(target=_sweep_forever, daemon=True).start()
    # Texts in JSON may take twice the bytes of a file, and a form adds its headers.
    app.add_middleware(RequestBodyLimitMiddleware, max_body_size=2 * file_bytes + 100_000)
    gr.mount_gradio_app(
        app,
        demo,
        path="/",
        theme=theme(),
        css_paths=STYLE,
        head=f"<script>{SCRIPT.read_text(encoding='utf-8')}</script>",
        footer_links=["api", "settings"],
        max_file_size=file_bytes,
        mcp_server=True,
        app_kwargs={"openapi_url": None},
        run_history=False,
        enable_monitoring=False,
        show_error=False,
        ssr_mode=False,
    )
    uvicorn.run(
        app,
        host=os.environ.get("GRADIO_SERVER_NAME", "127.0.0.1"),
        port=int(os.environ.get("GRADIO_SERVER_PORT", "7860")),
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=10,
        timeout_graceful_shutdown=5,
        access_log=False,
        log_config=_LOGGING,
    )
