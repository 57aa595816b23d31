"""scripts/reports/scale.py and `scripts.reports.encoders peak`: what they measure, on small inputs."""

import multiprocessing
import os
from types import SimpleNamespace

from torch.utils.flop_counter import FlopCounterMode

from scripts.reports import scale
from scripts.reports.encoders.peak import Multiplications


def test_the_steps_of_reading(tmp_path, monkeypatch):
    # The whole command takes a process of its own, which imports everything.
    monkeypatch.setattr(scale, "measure_job", lambda words: (40, scale.Spent(3.0, 2.0, 0.0)))
    lines = scale.read_table(80, tmp_path)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    assert [row[0] for row in rows[2:]] == [layout for layout in scale.LAYOUTS for _ in range(4)]
    assert [row[3] for row in rows[2:] if row[1] == "the whole command"] == ["20", "20"]
    assert all(row[4].endswith(" %") for row in rows[2:])


def test_processor_time_of_other_processes():
    context = multiprocessing.get_context("spawn")
    started = [context.Process(target=sum, args=(range(3 * 10**7),)) for _ in range(2)]
    for process in started:
        process.start()
    most = {}
    while any(process.is_alive() for process in started):
        most |= scale._seconds_below(os.getpid(), but=started[0].pid)
    assert most[started[1].pid] > 0
    assert started[0].pid not in most
    assert os.getpid() not in most


def test_operations_of_the_multiplications():
    config = SimpleNamespace(num_hidden_layers=2, hidden_size=8, intermediate_size=12, num_attention_heads=4)
    shapes = [(3, 5), (1, 2)]
    multiplications = Multiplications(config, shapes)
    with FlopCounterMode(display=False) as counter:
        multiplications.run()
    by_formula = [2 * 2 * b * n * (4 * 8**2 + 2 * 8 * 12 + 2 * n * 8) for b, n in shapes]
    assert counter.get_total_flops() == sum(by_formula)
