#!/usr/bin/env python3
"""Times torch.distributed over anyccl and over Gloo, and Open MPI if it is there, on a machine that is not idle.

    busy.py [--ranks 2,4] [--beside NAME,...] [--what NAME,...] [--seconds S] [--json FILE]

The libraries take turns call by call, in the same processes, after a barrier that all of them share, so a disturbance
hits all alike. The slowest rank of each call counts. Neighbours: see neighbours.py. Shown are median, mean and p99 of
each library, and how many times as long as anyccl Gloo takes in the mean and at p99.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
from neighbours import NEIGHBOURS, Unavailable

KIB = 1024
SYNCHRONIZE_EVERY = 8  # calls of each library


# Operations: (torch, group, rank, ranks) -> call, and (numpy, MPI.COMM_WORLD) -> call or None.
def all_reduce(size):
    def ours(torch, group, rank, ranks):
        data = torch.zeros(size // 4)
        return lambda: torch.distributed.all_reduce(data, group=group)

    def mpi(numpy, world):
        data, out = numpy.zeros(size // 4, "float32"), numpy.zeros(size // 4, "float32")
        return lambda: world.Allreduce(data, out)

    return ours, mpi


def barrier():
    def ours(torch, group, rank, ranks):
        return lambda: torch.distributed.barrier(group)

    return ours, lambda numpy, world: world.Barrier


def ring(size):
    """Each rank sends to the next one and receives from the one before."""

    def ours(torch, group, rank, ranks):
        dist, data, out = torch.distributed, torch.zeros(size // 4), torch.zeros(size // 4)

        def call():
            send = dist.P2POp(dist.isend, data, (rank + 1) % ranks, group)
            receive = dist.P2POp(dist.irecv, out, (rank - 1) % ranks, group)
            for work in dist.batch_isend_irecv([send, receive]):
                work.wait()

        return call

    def mpi(numpy, world):
        data, out = numpy.zeros(size // 4, "float32"), numpy.zeros(size // 4, "float32")
        return lambda: world.Sendrecv(data, (world.rank + 1) % world.size, 0, out, (world.rank - 1) % world.size)

    return ours, mpi


def all_gather_object(size):
    def ours(torch, group, rank, ranks):
        mine, everyones = os.urandom(size), [None] * ranks
        return lambda: torch.distributed.all_gather_object(everyones, mine, group=group)

    def mpi(numpy, world):
        mine = os.urandom(size)
        return lambda: world.allgather(mine)

    return ours, mpi


def queue(count, size):
    """`count` asynchronous all_reduces, then all of them are waited for: the gradients of a step."""

    def ours(torch, group, rank, ranks):
        data = [torch.zeros(size // 4) for _ in range(count)]

        def call():
            for work in [torch.distributed.all_reduce(each, group=group, async_op=True) for each in data]:
                work.wait()

        return call

    def mpi(numpy, world):
        data = [numpy.zeros(size // 4, "float32") for _ in range(count)]
        out = [numpy.zeros(size // 4, "float32") for _ in range(count)]
        return lambda: [request.wait() for request in [world.Iallreduce(*pair) for pair in zip(data, out)]]

    return ours, mpi


OPERATIONS = {
    "barrier": barrier(),
    "all_reduce 8 B": all_reduce(8),
    "all_reduce 1 KiB": all_reduce(KIB),
    "all_reduce 64 KiB": all_reduce(64 * KIB),
    "all_reduce 1 MiB": all_reduce(KIB * KIB),
    "all_reduce 4 MiB": all_reduce(4 * KIB * KIB),
    "ring of 256 KiB": ring(256 * KIB),
    "all_gather_object 1 MiB": all_gather_object(KIB * KIB),
    "8 x all_reduce 64 KiB": queue(8, 64 * KIB),
}


def tell(value):
    print("busy:", json.dumps(value), flush=True)


def told(lines):
    """What the first measured process told next; libraries print other lines."""
    return next((json.loads(line.removeprefix("busy:")) for line in lines if line.startswith("busy:")), [])


def work(arguments, rank, ranks):
    """One measured process. The first one tells all process ids, then its rows."""
    import torch
    import torch.distributed as dist

    import anyccl.torch  # noqa: F401

    dist.init_process_group("gloo", init_method=f"file://{arguments.store}", rank=rank, world_size=ranks)
    pids = [None] * ranks
    dist.all_gather_object(pids, os.getpid())
    if rank == 0:
        tell(pids)
        sys.stdin.readline()  # the neighbour has them now
    dist.barrier()
    groups = {name: dist.new_group(backend=name) for name in ("gloo", "anyccl")}
    world = None
    if "OMPI_COMM_WORLD_RANK" in os.environ:
        import numpy
        from mpi4py import MPI

        world = MPI.COMM_WORLD
    square = torch.ones(256, 256)
    rows = {}
    for name in arguments.what:
        ours, mpi = OPERATIONS[name]
        calls = {library: ours(torch, group, rank, ranks) for library, group in groups.items()}
        if world is not None:
            calls["openmpi"] = mpi(numpy, world)
        rows[name] = in_turns(dist, torch, calls, arguments.seconds, lambda: torch.mm(square, square))
    if rank == 0:
        tell(rows)
    dist.barrier()
    dist.destroy_process_group()


def in_turns(dist, torch, calls, seconds, compute):
    """Seconds of each call of each library, the slowest rank's, in the order of the calls."""
    for call in calls.values():
        call()
    times = {name: [] for name in calls}
    until = time.monotonic() + seconds
    more = torch.ones(1)
    while more.item() > 0:
        for turn in range(SYNCHRONIZE_EVERY):
            for name, call in sorted(calls.items(), reverse=turn % 2 > 0):
                compute()
                dist.barrier()
                start = time.perf_counter()
                call()
                times[name].append(time.perf_counter() - start)
        more.fill_(float(time.monotonic() < until))
        dist.all_reduce(more, op=dist.ReduceOp.MIN)
    for name, values in times.items():
        slowest = torch.tensor(values, dtype=torch.float64)
        dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
        times[name] = slowest.tolist()
    return times


def launch(arguments, ranks, environment):
    """The measured processes, started by Open MPI's launcher where there is one; the first one talks to us."""
    command = [sys.executable, "-W", "ignore", __file__, *sys.argv[1:], "--store", arguments.store]
    environment = {**os.environ, **environment}
    if arguments.mpi:
        allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        command = ["mpirun.openmpi", "-np", str(ranks), "--oversubscribe", "--bind-to", "none", *command]
        return [start(command, {**environment, **allowed}, True)]
    return [
        start(command, {**environment, "RANK": str(rank), "WORLD_SIZE": str(ranks)}, rank == 0) for rank in range(ranks)
    ]


def start(command, environment, talks):
    pipe = subprocess.PIPE if talks else None
    return subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True)


def measure(arguments, ranks, make_neighbour):
    with tempfile.TemporaryDirectory() as directory, make_neighbour() as neighbour:
        arguments.store = f"{directory}/store"
        processes = launch(arguments, ranks, neighbour.environment)
        first = processes[0]
        try:
            neighbour.adopt(told(first.stdout))
            output, _ = first.communicate("\n")
            if any(process.wait() != 0 for process in processes):
                sys.exit("busy.py: a rank failed (see above)")
        finally:
            for process in processes:
                process.kill()
                process.wait()
    return told(output.splitlines())


def p99(values):
    return sorted(values)[min(len(values) - 1, math.ceil(0.99 * len(values)) - 1)]


STATISTICS = {"median": statistics.median, "mean": statistics.fmean, "p99": p99}


def rows_of(times, ranks, beside):
    for what, libraries in times.items():
        row = {"ranks": ranks, "beside": beside, "what": what, "calls": len(libraries["anyccl"])}
        for library, values in libraries.items():
            row[library] = {name: function(values) for name, function in STATISTICS.items()}
        yield row


def ratio(row, name, peer="gloo"):
    return row[peer][name] / row["anyccl"][name]


def show(rows):
    peers = [name for name in ("gloo", "openmpi") if name in rows[0]]
    print("Microseconds: median / mean / p99. xR: Gloo takes R times as long as anyccl.\n")
    print(f"| ranks | beside | what | calls | anyccl | {' | '.join(peers)} | mean | p99 |")
    print("|---|---|---|---:|" + "---:|" * (len(peers) + 3))
    for row in rows:
        cells = [" / ".join(f"{row[name][each] * 1e6:.4g}" for each in STATISTICS) for name in ("anyccl", *peers)]
        print(
            f"| {row['ranks']} | {row['beside']} | {row['what']} | {row['calls']} | {' | '.join(cells)} "
            f"| x{ratio(row, 'mean'):.2f} | x{ratio(row, 'p99'):.2f} |"
        )


def summarize(rows):
    ratios = [ratio(row, name) for row in rows for name in ("mean", "p99")]
    below = [row for row in rows if min(ratio(row, "mean"), ratio(row, "p99")) < 1]
    print(f"\nGloo / anyccl: geometric mean of means x{statistics.geometric_mean(ratio(r, 'mean') for r in rows):.2f}, ", end="")
    print(f"of medians x{statistics.geometric_mean(ratio(r, 'median') for r in rows):.2f}, lowest x{min(ratios):.2f}; ", end="")
    print(f"{len(below)} of {len(rows)} cells have a mean or a p99 below Gloo's")


def names(known):
    def parse(text):
        chosen = text.split(",")
        unknown = [name for name in chosen if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"{unknown[0]!r} is not one of {', '.join(known)}")
        return chosen

    return parse


def has_mpi():
    """Whether Open MPI and mpi4py are both there."""
    try:
        import mpi4py  # noqa: F401
    except ImportError:
        return False
    return subprocess.run(["sh", "-c", "command -v mpirun.openmpi"], stdout=subprocess.DEVNULL).returncode == 0


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", default="2,4", help="numbers of processes (default: 2,4)")
    parser.add_argument("--beside", type=names(NEIGHBOURS), default=list(NEIGHBOURS), metavar="NAME,...",
                        help=f"only these neighbours, of: {', '.join(NEIGHBOURS)}")
    parser.add_argument("--what", type=names(OPERATIONS), default=list(OPERATIONS), metavar="NAME,...",
                        help=f"only these operations, of: {', '.join(OPERATIONS)}")
    parser.add_argument("--seconds", type=float, default=2, help="for each operation (default: 2)")
    parser.add_argument("--without-mpi", dest="mpi", action="store_false", help="leave Open MPI out")
    parser.add_argument("--json", help="also write the rows here, in seconds")
    parser.add_argument("--store", help=argparse.SUPPRESS)  # of a measured process
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    if arguments.store:
        rank = int(os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ["RANK"])
        ranks = int(os.environ.get("OMPI_COMM_WORLD_SIZE") or os.environ["WORLD_SIZE"])
        return work(arguments, rank, ranks)
    arguments.mpi = arguments.mpi and has_mpi()
    rows = []
    for ranks in map(int, arguments.ranks.split(",")):
        for beside in arguments.beside:
            try:
                rows += rows_of(measure(arguments, ranks, NEIGHBOURS[beside]), ranks, beside)
            except Unavailable as reason:
                print(f"busy.py: beside {beside}: not measured: {reason}", file=sys.stderr)
    if not rows:
        sys.exit("busy.py: nothing could be measured")
    show(rows)
    summarize(rows)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
