"""The libraries that are compared: how to build and start the program that measures each."""
import json
import os
import tempfile
from pathlib import Path
from typing import NamedTuple

import intel
import limits
from plan import KIB, OPS
from process import Failed, call, compile_with, finish, start
from results import ARENA, BARE, BOUND, LINES

BUDGET_MS = 60  # for the timed calls of one size of a peer


class Row(NamedTuple):
    bytes: int
    median_us: float
    wrong: bool
    algorithm: str


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


def peer_arguments(turn):
    return [turn.op, turn.batch.calls(), BUDGET_MS, turn.offset, *turn.batch.sizes()]


class Anyccl:
    """`anyccl perf`; variants of it, which are not peers, add `options` to the plain one."""
    transports = {"shm": (), "tcp": ("--transport", "tcp")}
    environment = {**os.environ, "ANYCCL_TUNER_TABLE": "none"}  # the state without `anyccl tune`

    def __init__(self, program, name="anyccl", options=(), only=None, smallest=0):
        self.program, self.name, self.options = program, name, options
        self.only, self.smallest = only, smallest

    def build(self, folder):
        if not self.program.exists():
            raise Failed(f"{self.program} does not exist: make build")
        usage = call([self.program, "perf", "--help"])
        for option in self.options:
            if option.startswith("-") and option not in usage:
                raise Failed(f"this anyccl perf has no {option}")

    def has(self, turn):
        if self.options and (turn.transport != "shm" or turn.op == "barrier"):
            return False
        return self.only in (None, turn.op)

    def measure(self, turn):
        parts = [part.at_least(self.smallest) for part in turn.batch.ranges]
        return [row for part in parts if part for row in self.measure_range(turn, part)]

    def measure_range(self, turn, part):
        in_place = int(turn.op == "broadcast")  # as MPI has it
        with tempfile.NamedTemporaryFile(suffix=".json") as results:
            call([self.program, "perf", turn.op, "-g", turn.ranks, "-b", max(part.first, 1), "-e", max(part.last, 1),
                  "-f", part.factor, "-n", part.calls, "-w", max(5, part.calls // 10), "--inplace", in_place, "-c", 0,
                  "--offset", turn.offset, *self.options, *self.transports[turn.transport], "--json", results.name], env=self.environment)
            try:
                rows = json.load(results)
            except json.JSONDecodeError as why:
                raise Failed(f"{self.program} wrote no JSON: {why}") from None
        return [Row(row["bytes"], row["median_us"], row["wrong"] != 0, row["algorithm"]) for row in rows]


def variants(program):
    """Other measurements of ours: memory from anycclMemAlloc, and small floats, which are summed in float32."""
    arena = Anyccl(program, ARENA, ("--local_register", "1"))
    return [arena] + [Anyccl(program, f"anyccl {name}", ("--datatype", name), "all_reduce", 256 * KIB)
                      for name in ("bf16", "f16")]


class Loop:
    """A program that is no library, with a core for each rank."""
    def __init__(self, name, program, ops, only=None, smallest=0):
        self.name, self.source, self.ops, self.only, self.smallest = name, f"{program}.cpp", ops, only, smallest

    def build(self, folder):
        self.program = folder / Path(self.source).stem
        compile_with([os.environ.get("CXX", "g++")], self.source, self.program, "-O3", "-march=native", "-pthread")

    def has(self, turn):
        return (turn.transport == "shm" and turn.op in self.ops and self.only in (None, turn.ranks)
                and turn.ranks <= len(os.sched_getaffinity(0)))

    def measure(self, turn):
        sizes = [size for size in turn.batch.sizes() if size >= self.smallest]
        return self.rows(turn, sizes) if sizes else []


class AllReduceLoop(Loop):
    """An AllReduce as threads do it without a library."""
    def rows(self, turn, sizes):
        ranks = [] if self.only else [turn.ranks]
        return peer_rows(call([self.program, *ranks, turn.op, turn.batch.calls(), BUDGET_MS, turn.offset, *sizes]))


class Lines(Loop):
    """What two ranks must pass to each other at least, both ways at once."""
    def rows(self, turn, sizes):
        passed = {size: max(4, int(size * limits.passed_share(turn.op))) for size in sizes}
        rows = peer_rows(call([self.program, turn.batch.calls(), BUDGET_MS, *sorted(set(passed.values()))]))
        found = {row.bytes: row for row in rows}
        return [found[passed[size]]._replace(bytes=size) for size in sizes]


def loops():
    return [AllReduceLoop(BOUND, "zero_copy", ("all_reduce",), smallest=256 * KIB),
            AllReduceLoop(BARE, "two_shot", ("all_reduce",), only=2),
            Lines(LINES, "lines", [op for op in OPS if op not in ("barrier", "broadcast", "reduce")], only=2)]


class Mpi:
    """An MPI library; `transports` maps each transport to (arguments, environment)."""
    def __init__(self, name, compiler, launcher, transports):
        self.name, self.compiler, self.launcher, self.transports = name, compiler, launcher, transports

    def build(self, folder):
        self.program = folder / f"mpi_bench.{self.name}"
        compile_with([self.compiler], "mpi_bench.cpp", self.program)

    def has(self, turn):
        return turn.transport in self.transports

    def measure(self, turn):
        arguments, environment = self.transports[turn.transport]
        if self.name == "openmpi" and turn.ranks > (os.cpu_count() or 1):
            arguments = (*arguments, "--oversubscribe")
        command = [self.launcher, "-np", turn.ranks, *arguments, self.program, *peer_arguments(turn)]
        return peer_rows(call(command, env={**os.environ, **environment}))


AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
OPEN_MPI = Mpi("openmpi", "mpicxx.openmpi", "mpirun.openmpi", {
    "shm": ((), AS_ROOT),
    "tcp": (("--mca", "pml", "ob1", "--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", "lo"), AS_ROOT)})
MPICH = Mpi("mpich", "mpicxx.mpich", "mpirun.mpich", {
    "shm": ((), {}),
    "tcp": ((), {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "lo"})})


class IntelMpi(Mpi):
    """Intel MPI from PyPI, inside a host: libfabric, which it needs for networks, is not part of it."""
    source, libraries = "mpi_bench.cpp", ()

    def __init__(self, name="impi", environment=()):
        super().__init__(name, None, None, {"shm": ((), {"I_MPI_FABRICS": "shm", **dict(environment)})})

    def build(self, folder):
        root = intel.install(folder)
        self.launcher = root / "bin/mpiexec.hydra"
        self.transports["shm"][1]["I_MPI_ROOT"] = str(root)
        self.program = folder / f"{self.source.removesuffix('.cpp')}.{self.name}"
        libraries = [str(word).format(root=root) for word in self.libraries]
        compile_with([os.environ.get("CXX", "g++")], self.source, self.program, f"-I{root}/include", *libraries,
                     f"-L{root}/lib", "-lmpi", f"-Wl,-rpath,{root}/lib")


class OneCcl(IntelMpi):
    """oneCCL's library for CPUs from PyPI, over Intel MPI."""
    source = "oneccl_bench.cpp"
    libraries = ("{root}/lib/ccl/cpu/lib/libccl.a", "-L{root}/lib", "-l:libintlc.so.5", "-lhwloc", "-ldl", "-lrt",
                 "-pthread")

    def __init__(self):
        super().__init__("oneccl", {"CCL_ATL_TRANSPORT": "mpi", "CCL_LOG_LEVEL": "error"})

    def has(self, turn):
        return super().has(turn) and turn.op != "send_recv"


class Gloo:
    """Debian's build has only TCP, so it uses TCP also inside a host."""
    name = "gloo"

    def build(self, folder):
        self.program = folder / "gloo_bench"
        compile_with([os.environ.get("CXX", "g++")], "gloo_bench.cpp", self.program, "-lgloo", "-pthread")

    def has(self, turn):
        return True

    def measure(self, turn):
        with tempfile.TemporaryDirectory() as meeting_point:
            started = [start([self.program, rank, turn.ranks, meeting_point, *peer_arguments(turn)])
                       for rank in range(turn.ranks)]
            return peer_rows(finish(started, self.program.name))


def peers():
    return [OPEN_MPI, MPICH, IntelMpi(), OneCcl(), Gloo()]
