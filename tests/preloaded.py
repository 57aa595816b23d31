"""Python programs in new processes that find torch and the like imported, which takes most of the time of a short one.

A server imports these libraries, and forks for each program. Libraries that read the environment, such as those of
Hugging Face, are not among them: a program imports them in its own environment.
"""

import atexit
import functools
import gc
import importlib
import json
import os
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

LIBRARIES = (
    "torch",
    "torch._dynamo",
    "torch.distributed.tensor",
    "numpy",
    "pandas",
    "pyarrow.parquet",
    "scipy.optimize",
    "scipy.stats",
    "sklearn.cluster",
    "sklearn.metrics",
)


def start(program, *arguments, cwd=None, env=None):
    """Start a program as `python -c` does; returns a function that waits for its `subprocess.CompletedProcess`."""
    kept = tempfile.TemporaryDirectory()
    folder = Path(kept.name)
    environment = dict(os.environ if env is None else env)
    words = ["-c", *map(str, arguments)]
    request = {"program": program, "words": words, "cwd": str(cwd or Path.cwd()), "env": environment}
    (folder / "request.json").write_text(json.dumps(request), encoding="utf-8")
    server = _server()
    server.stdin.write(f"{folder}\n")
    server.stdin.flush()
    process = int(server.stdout.readline())

    def wait():
        server.stdin.write(f"{process}\n")
        server.stdin.flush()
        code = int(server.stdout.readline())
        out, err = ((folder / name).read_text(encoding="utf-8", errors="replace") for name in ("out", "err"))
        kept.cleanup()
        return subprocess.CompletedProcess(words, code, out, err)

    return wait


def run(program, *arguments, cwd=None, env=None):
    """Run a program as `python -c` does; returns its code and what it printed."""
    return start(program, *arguments, cwd=cwd, env=env)()


@functools.cache
def _server():
    words, pipe = [sys.executable, __file__], subprocess.PIPE
    server = subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True)
    # It ends when its input does.
    atexit.register(server.communicate)
    return server


def _serve():
    """Read lines: of a folder with a request, which starts it, or of a process, which waits for it."""
    # The folder of this file.
    del sys.path[0]
    # What is imported stays: the search for garbage leaves it out, here and in each program.
    gc.disable()
    for name in LIBRARIES:
        importlib.import_module(name)
    gc.freeze()
    gc.enable()
    for line in iter(sys.stdin.readline, ""):
        words = line.strip()
        if words.isdigit():
            answer = os.waitstatus_to_exitcode(os.waitpid(int(words), 0)[1])
        else:
            answer = os.fork()
            if answer == 0:
                _become(Path(words))
        print(answer, flush=True)  # noqa: T201


def _become(folder):
    """Run the program of a request in this process, and end it."""
    request = json.loads((folder / "request.json").read_text(encoding="utf-8"))
    for number, target in ((0, os.devnull), (1, folder / "out"), (2, folder / "err")):
        opened = os.open(target, os.O_RDWR | os.O_CREAT)
        os.dup2(opened, number)
        os.close(opened)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ |= request["env"]
    paths = request["env"].get("PYTHONPATH", "")
    sys.path[0:0] = ["", *filter(None, paths.split(os.pathsep))]
    sys.argv = request["words"]
    code = 0
    try:
        exec(compile(request["program"], "<string>", "exec"), {"__name__": "__main__"})
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve()
