"""Shared memory of this host before and after 16 groups have reduced 16 MiB each, and when they have been idle for a while.

    anyccl run -n 4 -- env PYTHONPATH=build/release/python .venv/bin/python bench/start/idle_rings.py"""
import time

import numpy as np

import anyccl


def megabytes():
    with open("/proc/meminfo") as memory:
        return next(int(line.split()[1]) for line in memory if line.startswith("Shmem:")) / 1024


with anyccl.Communicator.from_env() as comm:
    start = megabytes()
    groups = [comm.split(0, comm.rank) for _ in range(16)]
    comm.barrier()
    created = megabytes()
    x = np.ones(4 << 20, np.float32)
    for group in groups:
        group.all_reduce(x, out=x)
        x.fill(1)
    comm.barrier()
    used = megabytes()
    time.sleep(14)  # groups are idle after 5 to 10 s
    if comm.rank == 0:
        print(f"created {created - start:.1f} MB, after the calls {used - start:.1f} MB, idle {megabytes() - start:.1f} MB")
    comm.barrier()
