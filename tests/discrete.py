"""Run the tests of what is decided discretely, with sums in other orders: by instruction set and number of threads."""

import itertools
import os
import sys

import pytest

from tests.conftest import ROOT


class InForks:
    """Run the collected tests in a fork of this process for each way to sum: the imports take longer than the tests."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session):
        import torch
        from threadpoolctl import threadpool_limits

        terminal = session.config.get_terminal_writer()
        for capability, threads in itertools.product(("avx2", "default"), (1, 2)):
            terminal.line(f"{capability}, {threads} threads")
            terminal.flush()
            child = os.fork()
            if child == 0:
                os.environ |= {"ATEN_CPU_CAPABILITY": capability, "OMP_NUM_THREADS": str(threads)}
                threadpool_limits(threads)
                # torch chooses its instructions at its first sum, which has to be after the fork.
                used = torch.backends.cpu.get_cpu_capability().lower(), torch.get_num_threads()
                assert used == (capability, threads), used
                return None
            session.testsfailed += os.waitpid(child, 0)[1] != 0
        return True


if __name__ == "__main__":
    marked = [str(path) for path in (ROOT / "tests").glob("test_*.py") if "mark.discrete" in path.read_text()]
    sys.exit(pytest.main(["-q", "-m", "discrete", *sorted(marked)], plugins=[InForks()]))
