# torchrun --standalone --nproc-per-node 4 examples/15_own_algorithms/with_torch.py
"""A DDP program needs two lines more to add up its gradients by an algorithm of one's own."""

import os

import algorithms
import torch
import torch.distributed as dist

import anyccl.torch

algorithms.my_ring.load(int(os.environ["WORLD_SIZE"]))  # before the process group is created
os.environ["ANYCCL_ALGO"] = "all_reduce:my_ring"
dist.init_process_group("anyccl")

ranks = dist.get_world_size()
x = torch.full((1000,), dist.get_rank() + 1.0)
dist.all_reduce(x)
assert (x == ranks * (ranks + 1) / 2).all()
assert 'algorithm="my_ring"' in anyccl.metrics_text()
print(f"rank {dist.get_rank()}: my_ring gives {x[0]:g}", flush=True)
dist.destroy_process_group()
