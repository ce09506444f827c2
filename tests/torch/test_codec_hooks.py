"""DDP's hook that sends codes: the gradients that come of it, and training that ends as well as without it.

With pytest -s it prints what docs/numbers/codecs.md has.
"""

import os
import statistics
import sys
from pathlib import Path

import pytest
import torch
import torch._dynamo  # noqa: F401  DDP imports it: once, and not in every rank
import torch.distributed as dist
from ranks import run_ranks
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

import anyccl
from anyccl.torch import hooks

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "examples/torch"))
import digits  # noqa: E402

LONG = "TESTS_LONG" in os.environ
RANKS = 4
STEPS, SEEDS = (660, (1, 2, 3, 4)) if LONG else (440, (1, 2))


def network(dtype=torch.float32):
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(20, 50), nn.ReLU(), nn.Linear(50, 3)).to(dtype)


def gradients(codec, dtype, **options):
    """The gradients of one step, in one vector: of the hook, or of DDP alone."""
    model = network(dtype)
    ddp = DistributedDataParallel(model, bucket_cap_mb=0.001)
    state = hooks.CodecState(codec=codec, **options) if codec else None
    if state:
        ddp.register_comm_hook(state, hooks.coded)
    for _ in range(3):  # DDP rebuilds its buckets after the first
        model.zero_grad()
        x = torch.arange(80.0).reshape(4, 20).sin() * (dist.get_rank() + 1)
        ddp(x.to(dtype)).square().mean().backward()
    if state:
        state.close()
    return torch.cat([p.grad.flatten().float() for p in model.parameters()])


@pytest.mark.parametrize("codec, share", [("int8", 0.02), ("mxint8", 0.03), ("int4", 0.2), ("mxfp8_e4m3", 0.1), ("bf16", 0.01)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gradients_are_averages_within_the_error_of_the_codec(codec, share, dtype):
    def body(rank):
        expected, got = gradients(None, dtype), gradients(codec, dtype, everywhere=True)
        assert (got - expected).norm() <= share * expected.norm() + (0.01 * expected.norm() if dtype == torch.bfloat16 else 0)
        everyones = [torch.empty_like(got) for _ in range(3)]
        dist.all_gather(everyones, got)
        assert all(torch.equal(everyones[0], other) for other in everyones)
    run_ranks(3, body)


def test_gradients_of_one_host_are_exact():
    def body(rank):
        assert torch.allclose(gradients("int4", torch.float32), gradients(None, torch.float32), rtol=1e-6)
    run_ranks(2, body)


def test_errors_come_out_of_backward():
    def body(rank):
        with pytest.raises(anyccl.Unsupported, match="codec int5"):
            hooks.CodecState(codec="int5")
        with pytest.raises(RuntimeError, match="datatype 8 with codec int8"):
            gradients("int8", torch.float64)
    run_ranks(2, body)


def wrong_digits(codec):
    """The percentage of unseen digits that are read wrong, mean over the seeds."""
    def body(rank):
        found = []
        for seed in SEEDS:
            torch.manual_seed(seed)
            model = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
            learn, test = digits.load()
            batches = digits.batches(dist.group.WORLD, learn, 1000)
            ddp = DistributedDataParallel(model)
            if codec:
                ddp.register_comm_hook(hooks.CodecState(codec=codec, everywhere=True), hooks.coded)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
            for _ in range(STEPS):
                images, labels = next(batches)
                optimizer.zero_grad()
                cross_entropy(ddp(images), labels).backward()
                optimizer.step()
            found.append(100 * (1 - digits.accuracy(model, test)))
        return found
    found = run_ranks(RANKS, body, deadline_s=300)[0]
    print(f"{codec or 'dense':10} {statistics.mean(found):.2f} % wrong ({min(found):.2f} to {max(found):.2f})")
    return statistics.mean(found)


def test_digits_are_read_within_half_a_point():
    dense = wrong_digits(None)
    for codec in ("int8", "int4", "mxint8", "mxfp8_e4m3") if LONG else ("int8", "int4"):
        assert wrong_digits(codec) <= dense + 0.5, codec
