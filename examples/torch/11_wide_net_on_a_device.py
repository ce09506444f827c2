# torchrun --standalone --nproc-per-node 2 examples/torch/11_wide_net_on_a_device.py
"""A net that is 4000 wide, batches of 1000, ten SGD steps, on a GPU where there is one; its trace has the shapes.

It has run on the CPU and, with small sizes, on a device that tests simulate; on a GPU nobody has run it yet. Gradients of
a device travel by way of the host while backward() goes on. The trace of rank 0 opens in https://ui.perfetto.dev.
"""

import argparse
import json
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.profiler import ProfilerActivity, profile

from example import add_device, assert_used, own_device


def parse_options():
    options = argparse.ArgumentParser()
    options.add_argument("--backend", default="anyccl", help="of torch.distributed (%(default)s)")
    options.add_argument("--width", type=int, default=4000, help="of each layer (%(default)s)")
    options.add_argument("--batch", type=int, default=1000, help="rows of a step, of each rank (%(default)s)")
    options.add_argument("--steps", type=int, default=10, help="of SGD (%(default)s)")
    options.add_argument("--trace", default="build/wide_net.json", help="file of the trace (%(default)s)")
    add_device(options)
    return options.parse_args()


def main():
    given = parse_options()
    dist.init_process_group(given.backend)
    device = own_device(given.device)
    assert_used(given.backend, device=device)
    rank = dist.get_rank()

    torch.manual_seed(0)
    width = given.width
    layers = [torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, width)]
    model = DDP(torch.nn.Sequential(*layers).to(device), bucket_cap_mb=25)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    torch.manual_seed(rank + 1)  # every rank has data of its own
    inputs, targets = (torch.randn(given.batch, width).to(device) for _ in range(2))
    losses = []
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
        for _ in range(given.steps):
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(inputs), targets)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())

    if rank == 0:
        os.makedirs(os.path.dirname(given.trace) or ".", exist_ok=True)
        profiler.export_chrome_trace(given.trace)
        shapes = shapes_of_sums(given.trace)
        print(f"{device}: loss {losses[0]:.4f} -> {losses[-1]:.4f}; {len(shapes)} all_reduce of "
              f"{sorted(set(shapes))} floats: {given.trace}", flush=True)
        assert losses[-1] < losses[0]
        assert sum(shapes) >= given.steps * 2 * width * (width + 1)  # every gradient in every step
    dist.destroy_process_group()


def shapes_of_sums(trace):
    """How many elements each all_reduce in the trace has."""
    with open(trace) as file:
        events = json.load(file)["traceEvents"]
    sums = [event for event in events if event.get("ph") == "X" and event["name"].endswith(":all_reduce")]
    return [event["args"]["Input Dims"][0][0] for event in sums]


if __name__ == "__main__":
    main()
