#!/usr/bin/env python3
"""Times torch.distributed on CPU tensors over anyccl and over Gloo, in turns, in one run.

    bench.py [--ranks 2,4] [--runs 3] [--quick] [--arena] [--json FILE] [--plot FILE.svg]

Collectives: per call of one rank, from the call until it returns; per iteration the slowest rank counts, and the
median over all iterations is shown. Each backend runs a few iterations, then the other, several times over. Inputs are
rewritten before each call and outputs read after it. `floor` is torch's own `fake` group, which does nothing: the cost
of the call in Python and in torch before a backend is called. All of it is done several times, each time with new
processes: times are the medians of these runs, and ratios come with those of the worst and the best run.

Programs: one step of DDP (a small network, 25 MB buckets), and tensor-parallel decoding (per token 64 all_reduces of
16 and 64 KiB between small matrix products); all_reduce_coalesced of 64 small tensors, whose bytes are those of one; and
object collectives of dictionaries, whose bytes are those of one rank's object.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
import warnings
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing

import anyccl.torch  # noqa: F401
from torch.testing._internal.distributed import fake_pg  # noqa: F401  registers "fake"

BACKENDS = ("gloo", "anyccl")
KIB = 1024
SIZES = [8, 1 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, KIB * KIB, 4 * KIB * KIB, 16 * KIB * KIB, 64 * KIB * KIB]


def all_reduce(count, ranks, group):
    data = torch.ones(count)
    return data, data, lambda: dist.all_reduce(data, group=group)


def reduce_scatter_tensor(count, ranks, group):
    data, out = torch.ones(count // ranks * ranks), torch.empty(count // ranks)
    return data, out, lambda: dist.reduce_scatter_tensor(out, data, group=group)


def all_gather_into_tensor(count, ranks, group):
    data, out = torch.ones(count // ranks), torch.empty(count // ranks * ranks)
    return data, out, lambda: dist.all_gather_into_tensor(out, data, group=group)


def all_to_all_single(count, ranks, group):
    data, out = torch.ones(count // ranks * ranks), torch.empty(count // ranks * ranks)
    return data, out, lambda: dist.all_to_all_single(out, data, group=group)


COLLECTIVES = [all_reduce, reduce_scatter_tensor, all_gather_into_tensor, all_to_all_single]


def timed(call, data, out, iterations):
    """Seconds of each call."""
    times = []
    for i in range(iterations):
        data.fill_(float(i % 3))
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
        out.sum()
    return times


def slowest(times, group):
    """The slowest rank's time of each iteration."""
    tensor = torch.tensor(times, dtype=torch.float64)
    dist.all_reduce(tensor, op=dist.ReduceOp.MAX, group=group)
    return tensor.tolist()


def in_turns(run, groups, turns):
    """Median seconds of run(group) -> [seconds], by backend."""
    times = {name: [] for name in groups}
    for name, group in groups.items():
        run(group)  # warm
    for _ in range(turns):
        for name, group in groups.items():
            times[name] += slowest(run(group), group)
    return {name: statistics.median(t) for name, t in times.items()}


def time_collectives(groups, ranks, sizes, turns):
    rows = []
    for collective in COLLECTIVES:
        for size in sizes:
            if size // 4 < ranks and collective is not all_reduce:
                continue
            iterations = max(2, min(100, (32 << 20) // (size + 100_000)))
            calls = {id(group): collective(max(1, size // 4), ranks, group) for group in groups.values()}

            def run(group, calls=calls, iterations=iterations):
                data, out, call = calls[id(group)]
                dist.barrier(group)
                return timed(call, data, out, iterations)

            medians = in_turns(run, groups, turns)
            rows.append({"what": collective.__name__, "ranks": ranks, "bytes": size, **medians})
    return rows


def time_floor(ranks, turns):
    group = dist.new_group(backend="fake")
    data, out, call = all_reduce(2, ranks, group)
    times = []
    for _ in range(turns):
        times += timed(call, data, out, 200)
    return {"what": "all_reduce", "ranks": ranks, "bytes": 8, "floor": statistics.median(times)}


def time_ddp(groups, ranks, turns):
    """One training step of a network of 6 million parameters."""
    steps = {}
    for name, group in groups.items():
        torch.manual_seed(0)
        net = torch.nn.Sequential(
            torch.nn.Linear(1024, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 2048), torch.nn.Linear(2048, 10)
        )
        net = torch.nn.parallel.DistributedDataParallel(net, process_group=group, bucket_cap_mb=25)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.01)

        def step(net=net, optimizer=optimizer):
            optimizer.zero_grad()
            net(torch.ones(16, 1024)).sum().backward()
            optimizer.step()

        steps[id(group)] = step

    def run(group):
        times = []
        for _ in range(3):
            dist.barrier(group)
            start = time.perf_counter()
            steps[id(group)]()
            times.append(time.perf_counter() - start)
        return times

    return [{"what": "DDP step", "ranks": ranks, "bytes": 4 * 6_317_066, **in_turns(run, groups, turns)}]


def time_decoding(groups, ranks, turns):
    """One token through 32 layers of width 4096, split over the ranks: two all_reduces a layer."""
    rows = []
    into, back = torch.randn(4096, 256), torch.randn(256, 4096)
    for tokens in (1, 4):

        def run(group, tokens=tokens):
            hidden = torch.randn(tokens, 4096)
            start = time.perf_counter()
            for _ in range(64):
                partial = torch.relu(hidden @ into) @ back
                dist.all_reduce(partial, group=group)
                hidden = partial / 1e4
            return [time.perf_counter() - start]

        with torch.no_grad():
            medians = in_turns(run, groups, 3 * turns)
        rows.append({"what": "decode a token", "ranks": ranks, "bytes": tokens * 4096 * 4, **medians})
    return rows


def time_coalesced(groups, ranks, turns):
    """64 tensors in one call."""
    warnings.filterwarnings("ignore", "`torch.distributed.all_reduce_coalesced` will be deprecated")
    rows = []
    for size in (8, 1024, 16384):
        tensors = [torch.ones(size // 4) for _ in range(64)]

        def run(group, tensors=tensors):
            dist.barrier(group)
            times = []
            for _ in range(10):
                start = time.perf_counter()
                dist.all_reduce_coalesced(tensors, op=dist.ReduceOp.MAX, group=group)
                times.append(time.perf_counter() - start)
            return times

        rows.append({"what": "64 coalesced", "ranks": ranks, "bytes": size, **in_turns(run, groups, turns)})
    return rows


def time_objects(groups, ranks, turns):
    """A dictionary of each rank, with one value of bytes or one tensor."""
    rows = []
    for size, iterations in ((100, 50), (KIB * KIB, 10)):
        for kind, value in (("bytes", bytes(size)), ("tensor", torch.ones(size // 4))):
            mine, got = {"rank": 0, "value": value}, [None] * ranks

            def run(group, mine=mine, got=got, iterations=iterations):
                dist.barrier(group)
                times = []
                for _ in range(iterations):
                    start = time.perf_counter()
                    dist.all_gather_object(got, mine, group=group)
                    times.append(time.perf_counter() - start)
                return times

            medians = in_turns(run, groups, turns)
            rows.append({"what": f"all_gather_object, {kind}", "ranks": ranks, "bytes": size, **medians})
    return rows


def work(rank, ranks, directory, sizes, turns, arena, report):
    torch.set_num_threads(1)
    if arena:
        anyccl.torch.enable_arena()
    dist.init_process_group("gloo", init_method=f"file://{directory}/store", rank=rank, world_size=ranks)
    groups = {name: dist.new_group(backend=name) for name in BACKENDS}
    rows = time_collectives(groups, ranks, sizes, turns)
    rows.append(time_floor(ranks, turns))
    rows += time_coalesced(groups, ranks, turns)
    rows += time_objects(groups, ranks, turns)
    rows += time_ddp(groups, ranks, turns)
    rows += time_decoding(groups, ranks, turns)
    if rank == 0:
        report.send(rows)
    dist.barrier()
    dist.destroy_process_group()


def measure(ranks, sizes, turns, arena):
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    with tempfile.TemporaryDirectory() as directory:
        processes = [
            context.Process(target=work, args=(rank, ranks, directory, sizes, turns, arena, sender))
            for rank in range(ranks)
        ]
        for process in processes:
            process.start()
        sender.close()
        try:
            rows = receiver.recv()
        except EOFError:
            sys.exit("bench.py: a rank failed (see above)")
        for process in processes:
            process.join()
    return rows


def human(size):
    for unit, scale in (("MiB", KIB * KIB), ("KiB", KIB)):
        if size >= scale:
            return f"{size / scale:.4g} {unit}"
    return f"{size} B"


def over_runs(runs):
    """The rows of several runs as one list: median seconds, and each run's ratio."""
    merged = []
    for same in zip(*runs):
        row = {key: same[0][key] for key in ("what", "ranks", "bytes")}
        row |= {key: statistics.median(r[key] for r in same) for key in (*BACKENDS, "floor") if key in same[0]}
        if "gloo" in row:
            row["ratios"] = sorted(r["gloo"] / r["anyccl"] for r in same)
        merged.append(row)
    return merged


def show(rows):
    floors = {(r["what"], r["ranks"], r["bytes"]): r["floor"] for r in rows if "floor" in r}
    print("| ranks | what | bytes | Gloo us | anyccl us | Gloo / anyccl | lowest | highest | floor us |")
    print("|---|---|---|---|---|---|---|---|---|")
    for r in rows:
        if "floor" in r:
            continue
        floor = floors.get((r["what"], r["ranks"], r["bytes"]))
        ratios = r["ratios"]
        print(
            f"| {r['ranks']} | {r['what']} | {human(r['bytes'])} | {r['gloo'] * 1e6:.1f} | {r['anyccl'] * 1e6:.1f} "
            f"| {statistics.median(ratios):.2f} | {ratios[0]:.2f} | {ratios[-1]:.2f} "
            f"| {f'{floor * 1e6:.1f}' if floor else ''} |"
        )


def plot(rows, path):
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.fonttype"] = "none"
    from matplotlib import pyplot

    names = [c.__name__ for c in COLLECTIVES]
    ranks = sorted({r["ranks"] for r in rows})
    figure, axes = pyplot.subplots(len(ranks), len(names), figsize=(15, 3.6 * len(ranks)), squeeze=False, sharex=True)
    for i, n in enumerate(ranks):
        for j, name in enumerate(names):
            axis = axes[i][j]
            for backend, color in (("gloo", "tab:red"), ("anyccl", "tab:blue")):
                points = [(r["bytes"], r[backend] * 1e6) for r in rows if r["what"] == name and r["ranks"] == n and backend in r]
                axis.loglog(*zip(*points), marker="o", markersize=3, color=color, label=backend)
            for floor in (r["floor"] * 1e6 for r in rows if r["what"] == name and r["ranks"] == n and "floor" in r):
                axis.axhline(floor, color="gray", linestyle=":", label="torch alone")
            axis.set_title(f"{name}, {n} ranks", fontsize=10)
            axis.grid(True, which="major", alpha=0.3)
            if j == 0:
                axis.set_ylabel("us (median)")
            if i == len(ranks) - 1:
                axis.set_xlabel("bytes")
    axes[0][0].legend()
    figure.tight_layout()
    figure.savefig(path)
    if path.endswith(".svg"):
        sys.path.append(str(Path(__file__).resolve().parent.parent / "peers"))
        import svg

        svg.thin_file(Path(path))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", default="2,4", help="numbers of processes (default: 2,4)")
    parser.add_argument("--runs", type=int, default=1, help="number of times that everything is measured (default: 1)")
    parser.add_argument("--quick", action="store_true", help="fewer sizes and turns")
    parser.add_argument("--arena", action="store_true", help="tensors in memory that peers read (both backends)")
    parser.add_argument("--json", help="also write the rows here, in seconds")
    parser.add_argument("--plot", help="also draw time against size, as .svg or .png")
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sizes, turns = (SIZES[::4], 2) if arguments.quick else (SIZES, 7)
    rows = over_runs(
        [row for ranks in arguments.ranks.split(",") for row in measure(int(ranks), sizes, turns, arguments.arena)]
        for _ in range(arguments.runs)
    )
    show(rows)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(rows, file, indent=1)
    if arguments.plot:
        plot(rows, arguments.plot)


if __name__ == "__main__":
    main()
