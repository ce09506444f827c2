"""Measures process groups of torch.distributed as groups.hpp does groups of a library: the same figures, the same form.

    torch_groups.py BACKEND RANKS COUNT"""
import multiprocessing
import os
import socket
import statistics
import sys
import time
import warnings

import torch
import torch.distributed as dist

warnings.filterwarnings("ignore")


def use():
    """(descriptors, mappings, kilobytes), of which shared pages count with the share of this process."""
    with open("/proc/self/smaps_rollup") as sizes:
        kilobytes = next(int(line.split()[1]) for line in sizes if line.startswith("Pss:"))
    with open("/proc/self/maps") as maps:
        return len(os.listdir("/proc/self/fd")), sum(1 for _ in maps), kilobytes


def milliseconds_since(start):
    return 1e3 * (time.perf_counter() - start)


def maximum(times):
    tensor = torch.tensor(times, dtype=torch.float64)
    dist.all_reduce(tensor, op=dist.ReduceOp.MAX)
    return tensor.tolist()


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def work(backend, rank, ranks, count, port, all_are_here):
    torch.set_num_threads(1)
    if backend == "anyccl":
        import anyccl.torch  # noqa: F401
    x = torch.ones(1)
    all_are_here.wait()
    start = time.perf_counter()
    dist.init_process_group(backend, init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=ranks)
    dist.all_reduce(x)
    first = [milliseconds_since(start)]
    groups, made, used = [], [], []
    before = use()
    for _ in range(count):
        dist.all_reduce(x)
        start = time.perf_counter()
        groups.append(dist.new_group())
        made.append(milliseconds_since(start))
        dist.all_reduce(x, group=groups[-1])
        used.append(milliseconds_since(start))
    after = use()
    first, made, used = maximum(first), maximum(made) if made else [], maximum(used) if used else []
    if rank == 0:
        print(f"first_ms\t{first[0]:.3f}")
        if count:
            print(f"next_ms\t{statistics.median(made):.4f}\nnext_used_ms\t{statistics.median(used):.4f}")
            descriptors, mappings, kilobytes = ((b - a) / count for a, b in zip(before, after))
            print(f"kilobytes\t{kilobytes:.1f}\ndescriptors\t{descriptors:.2f}\nmappings\t{mappings:.2f}")
    dist.barrier()
    dist.destroy_process_group()


def main():
    backend, ranks, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    context = multiprocessing.get_context("fork")  # torch is loaded once
    all_are_here, port = context.Barrier(ranks), free_port()
    processes = [context.Process(target=work, args=(backend, rank, ranks, count, port, all_are_here)) for rank in range(ranks)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    sys.exit(any(process.exitcode for process in processes))


if __name__ == "__main__":
    main()
