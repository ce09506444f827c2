# torchrun --standalone --nproc-per-node 2 examples/torch/01_wx.py
"""The smallest DDP program: y = w * 7 * x with w = 5.

Every rank has an x of its own, so a gradient of its own: 7 * x. DDP gives all of them the mean.
With another backend only the name would differ: --backend gloo.
"""

import argparse

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

from example import assert_used


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.tensor([5.0]))

    def forward(self, x):
        return self.w * 7 * x


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--backend", default="anyccl")
    backend = options.parse_args().backend
    dist.init_process_group(backend)
    assert_used(backend)
    rank, ranks = dist.get_rank(), dist.get_world_size()

    model = DDP(Model())
    x = torch.tensor([rank + 1.0])
    y = model(x)
    y.backward()

    w = model.module.w
    print(f"rank {rank}: x = {x.item()}, w = {w.item()}, y = {y.item()}, w.grad = {w.grad.item()}\n", end="", flush=True)
    assert y.item() == 5 * 7 * (rank + 1)
    assert w.grad.item() == 7 * (1 + ranks) / 2  # the mean of 7 * 1, 7 * 2, ...
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
