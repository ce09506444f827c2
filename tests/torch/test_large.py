"""Tensors of more than 2 GiB."""

import torch
import torch.distributed as dist
from ranks import run_ranks


def test_more_than_2_gib():
    def body(rank):
        x = torch.empty((1 << 31) + 5, dtype=torch.uint8)  # of fresh pages: zeros that cost nothing
        if rank == 0:
            x[-3:] = 7
        dist.broadcast(x, 0)
        assert x[-3:].eq(7).all() and x[-4] == 0 and x[1 << 30] == 0
    run_ranks(2, body)
