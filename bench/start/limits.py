"""Figures of one version beside the least that they could be: starting many ranks, ranks that outnumber the cores, waits
between calls, two hosts."""
import os
import re
import subprocess
import sys
from pathlib import Path

from process import Failed, call

ROOT = Path(__file__).resolve().parent.parent.parent
BIN = ROOT / "build/release/bin"
CLUSTER = ROOT / "tests/support/cluster"
PORT = 23456


def environment(**more):
    return os.environ | {"ANYCCL_TUNER_TABLE": "none"} | more


def start(ranks):
    """(ms from the last start to the last communicator, to the first result, descriptors, KB)"""
    said = call([BIN / "anyccl", "run", "--no-prefix", "-n", ranks, BIN / "start"], env=environment(ANYCCL_TRANSPORT="tcp"),
                timeout_s=120)
    found = re.search(r"created (\d+) ms .* AllReduce (\d+) ms.* at most (\d+) descriptors and (\d+) KB", said)
    if not found:
        raise Failed(f"bin/start says: {said}")
    return [float(figure) for figure in found.groups()]


def all_reduce(over, mode):
    """us of 8 bytes, 64 ranks."""
    said = call([BIN / "anyccl", "run", "--no-prefix", "-n", 64, BIN / "anyccl", "perf", "all_reduce", "-b", 8, "-e", 8,
                 "-n", 50, "-w", 5], env=environment(ANYCCL_TRANSPORT=over, ANYCCL_WAIT=mode), timeout_s=120)
    return next(float(line.split()[5]) for line in said.splitlines() if line.split()[:1] == ["8"])


def wait(mode):
    """(us late, part of a core in %) where a peer comes each 10 ms."""
    said = call([BIN / "waits", 10, 0.3, 200], env=environment(ANYCCL_WAIT=mode))
    _, late, _, core = said.splitlines()[-1].replace("%", "").split()
    return float(late), float(core)


class TwoHosts:
    """Namespaces; as root."""

    def __enter__(self):
        call([CLUSTER, "up", 2])
        return self

    def __exit__(self, *_):
        call([CLUSTER, "down"])

    def on_both(self, commands, **more):
        """Host h on core h; what host 1 says."""
        processes = [subprocess.Popen([CLUSTER, "on", str(h), "taskset", "-c", str(h % os.cpu_count()), *map(str, words)],
                                      env=environment(**more, RANK=str(h)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      text=True) for h, words in enumerate(commands)]
        said = [process.communicate(timeout=60)[0] for process in processes]
        if any(process.returncode for process in processes):
            raise Failed("between two hosts: " + "\n".join(said))
        return said

    def raw(self):
        words = [BIN / "exchange", 64, 20000, PORT]
        address = call([CLUSTER, "address", 0]).strip()
        return float(self.on_both([words, [*words, address]])[1])

    def all_gather(self):
        """us of 64 bytes from each rank."""
        words = [BIN / "anyccl", "perf", "all_gather", "-b", 128, "-e", 128, "-n", 20000, "-w", 100]
        said = self.on_both([words, words], WORLD_SIZE="2", MASTER_ADDR="h0", MASTER_PORT=str(PORT),
                            ANYCCL_SECRET="00112233445566778899aabbccddeeff")[0]
        return next(float(line.split()[5]) for line in said.splitlines() if line.split()[:1] == ["128"])


def two_hosts(rows, rounds):
    if os.geteuid() != 0:
        print("two hosts are left out: only root can make them", file=sys.stderr)
        return
    with TwoHosts() as hosts:
        for _ in range(rounds):
            rows.add("64-byte all_gather between two hosts, us", hosts.all_gather(), hosts.raw())


class Rows:
    def __init__(self):
        self.figures, self.floors = {}, {}

    def add(self, what, figure, floor=None):
        self.figures.setdefault(what, []).append(figure)
        if floor is not None:
            self.floors.setdefault(what, []).append(floor)

    def table(self, spread):
        lines = ["| what | anyccl | at least | anyccl / at least |", "|---|---|---|---|"]
        for what, figures in self.figures.items():
            floors = self.floors.get(what, [])
            ratios = [figure / floor for figure, floor in zip(figures, floors)]
            lines.append(f"| {what} | {spread(figures)} | {spread(floors) if floors else ''} | {spread(ratios) if floors else ''} |")
        return lines


def measure(rounds, most_ranks):
    """`at least`: ranks that only yield (ANYCCL_WAIT=latency), or the same bytes over a bare connection."""
    rows = Rows()
    for _ in range(rounds):
        for ranks in (64, 1024):
            if ranks > most_ranks:
                continue
            names = "last start to last communicator, ms", "to its first all_reduce, ms", "most descriptors", "most KB"
            for name, figure in zip(names, start(ranks)):
                rows.add(f"{ranks} ranks over tcp: {name}", figure)
        for over in ("shm", "tcp"):
            rows.add(f"all_reduce of 8 B, 64 ranks over {over} on {os.cpu_count()} cores, us", all_reduce(over, "balanced"),
                     all_reduce(over, "latency"))
        (late, core), (least, _) = wait("balanced"), wait("latency")
        rows.add("a peer comes each 10 ms: noticed after, us", late, least)
        rows.add("a peer comes each 10 ms: part of a core, %", core)
    two_hosts(rows, rounds)
    return rows
