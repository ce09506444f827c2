"""Training on a device: DDP with and without comm hooks, FSDP2, and the two programs of examples/torch. Losses are those
of the CPU, bit for bit: both compute there, and sums have the same bits."""

import functools

import pytest
import torch
import torch.distributed as dist
from on_device import run_on_devices
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel as DDP

STEPS = 5


def model():
    torch.manual_seed(0)
    layers = [torch.nn.Linear(8, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4)]
    return torch.nn.Sequential(*layers)


def train(net, rank, device, parameters=None):
    optimizer = torch.optim.SGD(parameters or net.parameters(), lr=0.1, foreach=False)
    torch.manual_seed(rank + 1)
    losses = []
    for _ in range(STEPS):
        x, y = torch.randn(16, 8), torch.randn(16, 4)
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(net(x.to(device)), y.to(device))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def twice(state, bucket):
    """Sums, and then averages what callbacks make of the sums."""
    tensor = bucket.buffer()
    future = dist.all_reduce(tensor, async_op=True).get_future()
    return future.then(lambda done: done.value()[0].div_(dist.get_world_size()))


@pytest.mark.parametrize("hook", [None, default_hooks.allreduce_hook, default_hooks.fp16_compress_hook, twice],
                         ids=["none", "allreduce", "fp16", "own"])
@pytest.mark.parametrize("views", [False, True])
def test_ddp(hook, views, tmp_path):
    def body(rank, device):
        losses = []
        for where in (torch.device("cpu"), device):
            net = DDP(model().to(where), bucket_cap_mb=0.01, gradient_as_bucket_view=views)
            if hook is not None:
                net.register_comm_hook(None, hook)
            losses.append(train(net, rank, where))
        assert losses[0] == losses[1]
        return losses[0]
    losses = run_on_devices(2, tmp_path, body)
    assert losses[0] != losses[1] and losses[0][-1] != losses[0][0]


def test_fsdp2(tmp_path):
    def body(rank, device):
        from torch.distributed.fsdp import fully_shard
        losses = []
        for where in (torch.device("cpu"), device):
            mesh = dist.init_device_mesh(where.type, (2,))
            net = model().to(where)
            for layer in net:
                fully_shard(layer, mesh=mesh)
            fully_shard(net, mesh=mesh)
            losses.append(train(net, rank, where))
        assert losses[0] == losses[1]
    run_on_devices(2, tmp_path, body)
