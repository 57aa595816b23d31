"""How fast Chamfer and GRUEN multiply, beside the fastest products of this machine, in float32.

METRICS_TEST_DATA=/path/to/data python -m scripts.benchmarks.products
"""

import time

import torch
from torch.utils.flop_counter import FlopCounterMode

from scripts.benchmarks import cases


def show(name, call, flops=None):
    """Print the rate of the fastest of three calls."""
    if flops is None:
        with FlopCounterMode(display=False) as counter:
            call()
        flops = counter.get_total_flops()
    times = []
    for _ in range(3):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    print(f"{name}: {flops / 1e9:.0f} GFLOP in {min(times):.2f} s, {flops / min(times) / 1e9:.0f} GFLOP/s", flush=True)


for n in (2048, 4096):
    square = torch.randn(n, n)
    show(f"a product of {n} x {n}", lambda: square @ square, 2 * n**3)
wide = torch.randn(20_000, 384)
show("a product of 2048 x 384 and 384 x 2048", lambda: wide[:2048] @ wide[:2048].T, 2 * 2048**2 * 384)
show("a product of 1024 x 384 and 384 x 1536", lambda: wide[:1024] @ wide[:1536].T, 2 * 1024 * 1536 * 384)
for case, n in ((cases.Chamfer(), 20_000), (cases.Gruen(), 200)):
    case.prepare()
    given = case.make(n)
    case.ours(given)
    show(case.title, lambda: case.ours(given))
