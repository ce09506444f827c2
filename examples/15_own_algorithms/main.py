"""Runs three algorithms of one's own (algorithms.py) by their names, on 8 ranks that stand for 4 hosts.

    anyccl run -n 8 -- python3 examples/15_own_algorithms/main.py
"""

import os

import algorithms
import numpy as np

import anyccl

RANKS, HOSTS = 8, (2, 2, 2, 2)

rank = int(os.environ["RANK"])
os.environ["ANYCCL_HOSTID"] = f"host {rank // 2}"  # as if each two ranks were on a host of their own
chosen = {
    "my_ring": algorithms.my_ring,
    "my_tree": algorithms.my_tree,
    "ring_and_tree": algorithms.ring_and_tree,
}
for name, algorithm in chosen.items():
    algorithm.load(RANKS, hosts=[HOSTS])  # on every rank, before the communicator is created

with anyccl.Communicator.from_env() as world:
    for name in chosen:
        os.environ["ANYCCL_ALGO"] = name  # which each new communicator reads
        with world.split(0) as comm:
            total = comm.all_reduce(np.full(1000, rank + 1.0))
            assert (total == RANKS * (RANKS + 1) / 2).all()
            assert comm.last_plan.startswith(f"all_reduce/{name} "), comm.last_plan
            if rank == 0:
                print(f"{RANKS} ranks ran {comm.last_plan}: the sum is {total[0]:g}")
