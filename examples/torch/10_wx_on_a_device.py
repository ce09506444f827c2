# torchrun --standalone --nproc-per-node 2 examples/torch/10_wx_on_a_device.py
"""y = w * 7 * x as in 01_wx, on a GPU where there is one, and what the profiler shows of it.

It has run on the CPU and on a device that tests simulate; on a GPU nobody has run it yet. Tensors of a device travel by way
of the host. With another backend or device only the names would differ: --backend cuda:nccl --device cuda.
"""

import argparse

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.profiler import ProfilerActivity, profile

from example import add_device, assert_used, own_device


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.tensor([5.0]))

    def forward(self, x):
        return self.w * 7 * x


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--backend", default="anyccl", help="of torch.distributed (%(default)s)")
    add_device(options)
    given = options.parse_args()
    dist.init_process_group(given.backend)
    device = own_device(given.device)
    assert_used(given.backend, device=device)
    rank, ranks = dist.get_rank(), dist.get_world_size()

    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        model = DDP(Model().to(device))
        x = torch.tensor([rank + 1.0], device=device)
        y = model(x)
        y.backward()

    w = model.module.w
    print(f"rank {rank}: x = {x.item()}, w = {w.item()}, y = {y.item()}, w.grad = {w.grad.item()}, on {w.device}\n", end="",
          flush=True)
    calls = {event.key: event.count for event in profiler.key_averages() if event.key.endswith(":all_reduce")}
    if rank == 0:
        print(f"the profiler has seen {calls}", flush=True)
    assert y.item() == 5 * 7 * (rank + 1)
    assert w.grad.item() == 7 * (1 + ranks) / 2  # the mean of 7 * 1, 7 * 2, ...
    assert sum(calls.values()) >= 1
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
