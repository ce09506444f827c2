"""1,797 handwritten digits of 8 x 8 pixels, and a small network that reads them."""

import os
from pathlib import Path

import numpy
import torch
from torch import nn

FILE = Path(os.environ.get("ANYCCL_DIGITS", Path(__file__).parents[2] / "build/data/digits.csv.gz"))
LEARNED = 1437  # images to learn from; the other 360 are for the test
BATCH = 16  # images per rank and step


def load():
    """Returns ((images, labels) to learn from, (images, labels) for the test); images are N x 1 x 8 x 8, in 0..1."""
    if not FILE.exists():
        raise SystemExit(f"{FILE} is missing: scripts/get-digits {FILE.parent}")
    table = torch.from_numpy(numpy.loadtxt(FILE, delimiter=",", dtype=numpy.float32))
    table = table[torch.randperm(len(table), generator=torch.Generator().manual_seed(0))]
    images, labels = table[:, :64].reshape(-1, 1, 8, 8) / 16, table[:, 64].long()
    return (images[:LEARNED], labels[:LEARNED]), (images[LEARNED:], labels[LEARNED:])


def batches(group, learn, epochs):
    """This rank's share of the images, batch by batch; all ranks get the same number of full batches."""
    images, labels = learn
    rank, ranks = group.rank(), group.size()
    for epoch in range(epochs):
        order = torch.randperm(len(images), generator=torch.Generator().manual_seed(epoch))
        for first in range(0, len(order) - BATCH * ranks + 1, BATCH * ranks):
            mine = order[first + BATCH * rank:first + BATCH * (rank + 1)]
            yield images[mine], labels[mine]


def network() -> nn.Module:
    """About 300,000 weights, the same in every call."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64 * 4 * 4, 256), nn.ReLU(),
        nn.Linear(256, 10),
    )


def weights(model: nn.Module) -> torch.Tensor:
    """All of them, in one vector."""
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def accuracy(model: nn.Module, test) -> float:
    images, labels = test
    with torch.no_grad():
        return (model(images).argmax(1) == labels).float().mean().item()
