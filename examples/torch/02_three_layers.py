# torchrun --standalone --nproc-per-node 2 examples/torch/02_three_layers.py
"""Three wide layers, ten SGD steps, and a trace that shows communication during computation.

Backward begins with the last layer. As soon as its gradients are there, DDP sends them (a layer of
4000 x 4000 floats is a bucket of its own), while backward continues with the layer before. The trace of
rank 0 opens in https://ui.perfetto.dev or chrome://tracing.
"""

import argparse
import json
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.profiler import ProfilerActivity, profile


def parse_options():
    options = argparse.ArgumentParser()
    options.add_argument("--backend", default="anyccl")
    options.add_argument("--width", type=int, default=4000, help="of each layer (%(default)s); under 2600 all are one bucket")
    options.add_argument("--trace", default="build/three_layers.json", help="file of the trace (%(default)s)")
    return options.parse_args()


def main():
    options = parse_options()
    dist.init_process_group(options.backend)
    rank = dist.get_rank()
    torch.manual_seed(0)

    width = options.width
    layer = lambda: torch.nn.Linear(width, width)
    net = torch.nn.Sequential(layer(), torch.nn.ReLU(), layer(), torch.nn.ReLU(), layer())
    model = DDP(net, bucket_cap_mb=25)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    torch.manual_seed(rank)  # every rank has data of its own
    inputs, targets = torch.randn(20, width), torch.randn(20, width)
    losses = []
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        for _ in range(10):
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(inputs), targets)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())

    if rank == 0:
        os.makedirs(os.path.dirname(options.trace) or ".", exist_ok=True)
        profiler.export_chrome_trace(options.trace)
        operations, beside = overlap(options.trace, options.backend)
        print(f"{options.backend}: loss {losses[0]:.4f} -> {losses[-1]:.4f}; {operations} all_reduce, "
              f"{beside} of them during backward: {options.trace}", flush=True)
        assert losses[-1] < losses[0]
        assert operations >= 20 and beside >= 10  # the first layer's gradients are the last: nothing overlaps them
    dist.destroy_process_group()


def overlap(trace, backend):
    """The number of all_reduce of that backend in the trace, and of those that run during a layer's backward."""
    with open(trace) as file:
        events = [e for e in json.load(file)["traceEvents"] if e.get("ph") == "X"]
    span = lambda event: (event["ts"], event["ts"] + event["dur"])
    sums = [span(e) for e in events if e["name"] == f"{backend}:all_reduce"]
    backward = [span(e) for e in events if e["name"].endswith("AddmmBackward0")]
    return len(sums), sum(any(a < end and begin < b for begin, end in backward) for a, b in sums)


if __name__ == "__main__":
    main()
