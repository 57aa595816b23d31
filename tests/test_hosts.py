"""text-metrics score --engine ray on two hosts, of which one dies; they are network namespaces of this machine."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.commands import score, words_of
from tests.conftest import ROOT
from tests.files import write_jsonl
from tests.test_ray import changed_metric, on
from tests.test_score import make_rows, outputs

PORT = 6379
# Of a test that hangs.
SECONDS = 300

# Writes the first text of each batch to a file that is named by host. The second host stops in its third batch, and the
# first host waits for that in each of its own: so both score, and the second one dies in the middle of a batch.
STOPPING = """
        host, stopped = os.stat("/proc/self/ns/net").st_ino, marks.parent / "stopped"
        is_second = str(host) == (marks.parent / "second").read_text()
        number = len(list(marks.glob(f"{host}-*")))
        if is_second and number == 2:
            stopped.touch()
            time.sleep(1000)
        while not is_second and not stopped.exists():
            time.sleep(0.02)
        (marks / f"{host}-{number}").write_text(arguments["predictions"][0][0])
        return compute(self, **arguments)
"""


class Host:
    """A network namespace with an address."""

    def __init__(self, number):
        self.name = f"host{number}-{os.getpid()}"
        self.address = f"10.213.0.{number}"

    @property
    def id(self):
        return os.stat(f"/var/run/netns/{self.name}").st_ino

    def start(self, words, log, **environment):
        """Start a process on the host."""
        words = ["ip", "netns", "exec", self.name, *map(str, words)]
        names = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled", "RAY_ENABLE_AUTO_CONNECT": "0"}
        # Workers that start before a job do not have its files, so that it cannot use them. Ray gives workers a low
        # priority, at which they wait for all other tests.
        names |= {"RAY_prestart_worker_first_driver": "0", "RAY_worker_niceness": "0"}
        # A host is dead if it refuses three checks of its health, by default five, 3 s apart.
        names |= {"RAY_health_check_period_ms": "500", "RAY_health_check_failure_threshold": "3"}
        with log.open("a") as file:
            variables = os.environ | names | environment
            return subprocess.Popen(words, env=variables, cwd=ROOT, stdout=file, stderr=file)

    def kill(self):
        """Kill all processes of the host."""
        while pids := subprocess.run(
            ["ip", "netns", "pids", self.name], capture_output=True, check=True
        ).stdout.split():
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            time.sleep(0.05)


def ip(words):
    subprocess.run(["ip", *words.split()], check=True, capture_output=True, text=True)


@pytest.fixture
def hosts():
    """Two hosts, and the network between them."""
    if shutil.which("ip") is None:
        pytest.skip("two hosts need the command ip, of iproute2")
    hosts = Host(1), Host(2)
    made = []
    try:
        try:
            for host in hosts:
                ip(f"netns add {host.name}")
                made.append(host)
                ip(f"netns exec {host.name} true")
            ip(f"-n {hosts[0].name} link add eth0 type veth peer name eth0 netns {hosts[1].name}")
        except subprocess.CalledProcessError as error:
            pytest.skip(f"no network namespaces can be made here: {error.stderr.strip()}")
        for host, other in (hosts, hosts[::-1]):
            ip(f"-n {host.name} address add {host.address}/24 dev eth0")
            ip(f"-n {host.name} link set eth0 up")
            ip(f"-n {host.name} link set lo up")
            # Ray looks for the way to the internet to find the address of a machine.
            ip(f"-n {host.name} route add default via {other.address}")
        yield hosts
    finally:
        for host in made:
            host.kill()
            ip(f"netns delete {host.name}")


@pytest.fixture
def two_machines(hosts, tmp_path):
    """A cluster of two hosts, with one core each: its address."""
    address = f"{hosts[0].address}:{PORT}"
    more = ["--num-cpus", "1", "--object-store-memory", "80000000", "--disable-usage-stats", "--block"]
    more += ["--include-log-monitor", "false"]
    head = ["--head", "--port", str(PORT), "--include-dashboard", "false"]
    logs = [tmp_path / f"ray{i}.log" for i in range(2)]
    # The path of a socket has at most 107 characters.
    with tempfile.TemporaryDirectory(prefix="ray") as session:
        for host, words, log in zip(hosts, (head, ["--address", address]), logs, strict=True):
            ray = [Path(sys.executable).with_name("ray"), "start", "--node-ip-address", host.address]
            job = host.start([*ray, *words, *more], log, RAY_TMPDIR=session)
            wait_for(lambda log=log: b"Ray runtime started" in log.read_bytes(), job)
        yield address
        for host in hosts:
            host.kill()


def wait_for(is_done, job=None):
    end = time.monotonic() + SECONDS
    while not is_done():
        assert time.monotonic() < end
        assert job is None or job.poll() is None
        time.sleep(0.05)


@pytest.mark.slow
def test_a_host_that_dies_loses_nothing(hosts, two_machines, tmp_path):
    first, second = hosts
    texts = [f"{text} {i}" for i, row in enumerate(make_rows(200)) for text in row["texts"]]
    here, there = (tmp_path / name for name in ("here", "there"))
    for folder in (here, there):
        folder.mkdir()
        write_jsonl(folder / "data.jsonl", [{"text": text} for text in texts])
    assert score(here / "data.jsonl", "--set-size", 3, key="text", size=30) == 0

    changed = changed_metric(tmp_path, STOPPING)
    (tmp_path / "second").write_text(str(second.id))
    marks = tmp_path / "marks"
    parts = there / "out.jsonl.parts"
    log = tmp_path / "job.log"
    more = ["--set-size", 3, "--metric", changed, *on(two_machines, 2)]
    words = words_of(there / "data.jsonl", *more, key="text", size=30)
    job = first.start([sys.executable, "-m", "text_metrics", "score", *words], log)
    wait_for((tmp_path / "stopped").exists, job)
    # Both hosts score: the first batch of the second one is saved.
    of_second = [texts.index((marks / f"{second.id}-{i}").read_text()) // 30 for i in range(2)]
    wait_for(lambda: len(list(parts.glob("part-????????"))) > of_second[0], job)
    second.kill()
    assert job.wait(SECONDS) == 0, log.read_text()
    assert list(marks.glob(f"{first.id}-*"))
    assert len(list(marks.glob(f"{second.id}-*"))) == 2
    assert outputs(there) == outputs(here)
