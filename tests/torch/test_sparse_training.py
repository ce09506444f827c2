"""Training that sends 1 % of the gradients: as good as with all of them if the rest is remembered, and not without.

One bound for both, so that it can tell the two apart. The long form (TESTS_LONG) has more steps, seeds and variants.
With pytest -s it prints what docs/numbers/sparse-gradients.md has.
"""

import os
import statistics
import sys
import time
from pathlib import Path

import torch
import torch._dynamo  # noqa: F401  DDP imports it: once, and not in every rank
import torch.distributed as dist
from ranks import run_ranks
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from anyccl.torch import hooks

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "examples/torch"))
import digits  # noqa: E402
import transformer  # noqa: E402

LONG = "TESTS_LONG" in os.environ
RANKS = 4
MOMENTUM = 0.9

# A hook with the options of its state, or none: with the optimizer's momentum.
VARIANTS = {
    "dense": (None, {}),
    "topk": (hooks.topk, {"momentum": MOMENTUM, "masking": False}),
    "threshold": (hooks.threshold, {"momentum": MOMENTUM, "masking": False}),
    "masked": (hooks.topk, {"momentum": MOMENTUM}),
    "forgetful": (hooks.topk, {"feedback": False}),
}


class Digits:
    """Two layers read handwritten digits. The score: the percentage of unseen digits that it gets wrong."""

    rate, steps, seeds = 0.05, 660 if LONG else 440, (1, 2, 3, 4) if LONG else (1, 2)

    def __init__(self, seed):
        torch.manual_seed(seed)
        self.model = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
        self.learn, self.test = digits.load()
        self.batches = digits.batches(dist.group.WORLD, self.learn, 1000)

    def loss(self, ddp):
        images, labels = next(self.batches)
        return cross_entropy(ddp(images), labels)

    def score(self):
        return 100 * (1 - digits.accuracy(self.model, self.test))


class Characters:
    """A small transformer continues the license of this repository. The score: its loss on all of that."""

    rate, steps, seeds = 0.05, 250 if LONG else 150, (1, 2, 3) if LONG else (1,)
    batch = 8  # per rank

    def __init__(self, seed):
        text = (ROOT / "LICENSE").read_bytes()
        letters = {letter: i for i, letter in enumerate(sorted(set(text)))}
        tokens = torch.tensor([letters[letter] % transformer.VOCABULARY for letter in text])
        self.windows = tokens.unfold(0, transformer.LENGTH + 1, 1)
        self.model = transformer.Transformer()
        self.random = torch.Generator().manual_seed(seed * 1000 + dist.get_rank())

    def loss(self, ddp):
        chosen = torch.randint(len(self.windows), (self.batch,), generator=self.random)
        return transformer.loss_of(ddp, self.windows[chosen])

    def score(self):
        with torch.no_grad():
            return transformer.loss_of(self.model, self.windows[::7]).item()


def train(task, hook, options):
    """Returns the score, and how many times fewer bytes were sent than by dense training."""
    ddp = DistributedDataParallel(task.model)
    state = hooks.SparseState(task.model, density=0.01, warm_up=task.steps // 5, **options)
    if hook is not None:
        ddp.register_comm_hook(state, hook)
    momentum = 0 if "momentum" in options else MOMENTUM  # which is the state's else
    optimizer = torch.optim.SGD(task.model.parameters(), lr=task.rate, momentum=momentum)
    for _ in range(task.steps):
        optimizer.zero_grad()
        task.loss(ddp).backward()
        optimizer.step()
    saved = state.bytes_dense / state.bytes_sent if hook else 1.0
    return task.score(), saved


def bytes_on_loopback():
    """The bytes through the loopback interface: of these ranks alone, in a network namespace and over TCP."""
    lines = Path("/proc/net/dev").read_text().splitlines()
    return sum(int(line.split()[9]) for line in lines if line.split()[0] == "lo:")


def scores(kind, variant):
    """The mean over the seeds."""
    def body(rank):
        return [train(kind(seed), *VARIANTS[variant]) for seed in kind.seeds]
    began, bytes_before = time.perf_counter(), bytes_on_loopback()
    found = run_ranks(RANKS, body, deadline_s=600)[0]
    each = [score for score, _ in found]
    print(f"{kind.__name__:10} {variant:10} {statistics.mean(each):7.3f} ({min(each):.3f} to {max(each):.3f}), "
          f"bytes / {found[0][1]:.1f}, {(bytes_on_loopback() - bytes_before) / 1e6:.1f} MB over lo, "
          f"{time.perf_counter() - began:.1f} s")
    return statistics.mean(each), found[0][1]


def check(kind, bound):
    dense, _ = scores(kind, "dense")
    for variant in ("topk", "threshold") if LONG else ("topk",):
        score, saved = scores(kind, variant)
        assert score <= dense + bound, f"{variant}: {score}, and {dense} with all gradients"
        assert saved > 4
    if LONG:
        scores(kind, "masked")  # for the page alone
    score, _ = scores(kind, "forgetful")
    assert score > dense + bound, f"without feedback: {score}, and {dense} with all gradients"


def test_digits_are_recognised_within_half_a_point():
    check(Digits, 0.5)


def test_a_transformer_has_the_loss_within_a_tenth():
    check(Characters, 0.1)
