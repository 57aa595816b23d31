"""Python programs in processes of their own."""

import subprocess
import sys


def start(program, *arguments, cwd=None, env=None):
    """Start a program; returns a function that waits for its `subprocess.CompletedProcess`."""
    words = [sys.executable, "-c", program, *map(str, arguments)]
    process = subprocess.Popen(words, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def wait():
        out, err = process.communicate()
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    return wait


def run(program, *arguments, cwd=None, env=None):
    """Run a program; returns its code and what it printed."""
    return start(program, *arguments, cwd=cwd, env=env)()
