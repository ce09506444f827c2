"""The libraries that are compared: how to build what measures each, and how to start it."""
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
TIMEOUT_S = 60  # for one library, number of ranks and batch of sizes
BUDGET_MS = 60  # for the timed calls of one cell of a peer


class Batch(NamedTuple):
    """Sizes that one start of a program measures: first, first * factor, ... last."""
    first: int
    last: int
    factor: int
    calls: int

    def sizes(self):
        size = self.first
        while size <= self.last:
            yield size
            size *= self.factor


class Row(NamedTuple):
    bytes: int
    median_us: float
    wrong: bool
    algorithm: str


class Failed(Exception):
    """A program could not be built or run; the message says which and why."""


def call(command, timeout_s=TIMEOUT_S, **options):
    """Runs `command` and returns what it prints."""
    try:
        done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=timeout_s, **options)
    except subprocess.TimeoutExpired:
        raise Failed(f"{command[0]} took longer than {timeout_s} s") from None
    if done.returncode != 0:
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines()[-3:]
        raise Failed(f"{command[0]} exited with {done.returncode}: " + " | ".join(lines))
    return done.stdout


def peer_rows(output):
    """The rows that measure.hpp prints; of several algorithms for one size, the fastest."""
    best = {}
    for line in output.splitlines():
        fields = line.split("\t")
        if len(fields) != 5:
            continue
        row = Row(int(fields[0]), float(fields[1]), fields[3] != "0", fields[4])
        if row.bytes not in best or row.median_us < best[row.bytes].median_us:
            best[row.bytes] = row
    return list(best.values())


class Anyccl:
    name = "anyccl"
    transports = {"shm": (), "tcp": ("--transport", "tcp")}

    def __init__(self, program):
        self.program = program

    def build(self, folder):
        if not self.program.exists():
            raise Failed(f"{self.program} does not exist: make build")

    def measure(self, transport, ranks, batch):
        with tempfile.NamedTemporaryFile(suffix=".json") as results:
            call([self.program, "perf", "all_reduce", "-g", ranks, "-b", batch.first, "-e", batch.last,
                  "-f", batch.factor, "-n", batch.calls, "-w", max(5, batch.calls // 10), "--inplace", 0,
                  *self.transports[transport], "--json", results.name])
            try:
                rows = json.load(results)
            except json.JSONDecodeError as why:
                raise Failed(f"{self.program} wrote no JSON: {why}") from None
        return [Row(row["bytes"], row["median_us"], row["wrong"] != 0, row["algorithm"])
                for row in rows]


class Mpi:
    """Open MPI or MPICH; `transports` maps what is compared to (arguments, environment)."""
    def __init__(self, name, flavour, transports):
        self.name, self.flavour, self.transports = name, flavour, transports

    def build(self, folder):
        self.program = folder / f"mpi_allreduce.{self.flavour}"
        compile_with([f"mpicxx.{self.flavour}"], "mpi_allreduce.cpp", self.program)

    def measure(self, transport, ranks, batch):
        arguments, environment = self.transports[transport]
        if self.flavour == "openmpi" and ranks > (os.cpu_count() or 1):
            arguments = (*arguments, "--oversubscribe")
        output = call([f"mpirun.{self.flavour}", "-np", ranks, *arguments, self.program, batch.calls, BUDGET_MS,
                       *batch.sizes()], env={**os.environ, **environment})
        return peer_rows(output)


AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
OPEN_MPI = Mpi("openmpi", "openmpi", {
    "shm": ((), AS_ROOT),
    "tcp": (("--mca", "pml", "ob1", "--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", "lo"), AS_ROOT)})
MPICH = Mpi("mpich", "mpich", {
    "shm": ((), {}),
    "tcp": ((), {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "lo"})})


class Gloo:
    """Debian's build has only TCP, so that is what it does inside a host, too."""
    name = "gloo"
    transports = ("shm", "tcp")

    def build(self, folder):
        self.program = folder / "gloo_allreduce"
        compile_with([os.environ.get("CXX", "g++")], "gloo_allreduce.cpp", self.program, "-lgloo", "-pthread")

    def measure(self, transport, ranks, batch):
        with tempfile.TemporaryDirectory() as meeting_point:
            command = [str(word) for word in (self.program, "{rank}", ranks, meeting_point, batch.calls, BUDGET_MS,
                                              *batch.sizes())]
            started = [subprocess.Popen([word.format(rank=rank) for word in command], text=True,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                       for rank in range(ranks)]
            try:
                results = [process.communicate(timeout=TIMEOUT_S) for process in started]
            except subprocess.TimeoutExpired:
                raise Failed(f"{self.program.name} took longer than {TIMEOUT_S} s") from None
            finally:
                for process in started:
                    process.kill()
                    process.wait()
        for rank, process in enumerate(started):
            if process.returncode != 0:
                raise Failed(f"{self.program.name}, rank {rank}, exited with {process.returncode}: "
                             + results[rank][1].strip()[-200:])
        return peer_rows(results[0][0])


def compile_with(compiler, source, program, *libraries):
    if shutil.which(compiler[0]) is None:
        raise Failed(f"{compiler[0]} is not installed (scripts/install-packages bench)")
    sources = [HERE / source, HERE / "measure.hpp"]
    if program.exists() and program.stat().st_mtime > max(file.stat().st_mtime for file in sources):
        return
    program.parent.mkdir(parents=True, exist_ok=True)
    call([*compiler, "-std=c++17", "-O2", HERE / source, "-o", program, *libraries], timeout_s=300)
