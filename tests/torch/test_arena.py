"""Tensors in memory that the ranks of a host read where it lies: anyccl.torch.enable_arena()."""

import gc
import os
import threading

import pytest
import torch
import torch._dynamo  # noqa: F401  DDP imports it: once, and not in every rank
import torch.distributed as dist
from ranks import fork_ranks, run_ranks
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

import anyccl.torch

MIB = 1 << 20


def arena_ranges():
    """The memory of anyccl that is mapped here: [begin, end) of this process's own and of its peers' alike."""
    with open("/proc/self/maps") as maps:
        lines = [line.split() for line in maps if "memfd:anyccl: anycclMemAlloc" in line]
    return [tuple(int(part, 16) for part in line[0].split("-")) for line in lines]


def arena_bytes():
    return sum(end - begin for begin, end in arena_ranges())


def is_in_arena(tensor):
    return any(begin <= tensor.data_ptr() < end for begin, end in arena_ranges())


def in_process(body):
    return fork_ranks(1, lambda rank: body())[0]


def test_only_large_tensors_and_only_while_it_is_enabled():
    def body():
        before = torch.ones(MIB)
        anyccl.torch.enable_arena()
        large, small = torch.ones(MIB), torch.ones(100)
        anyccl.torch.disable_arena()
        after = torch.ones(MIB)
        assert [is_in_arena(x) for x in (before, large, small, after)] == [False, True, False, False]
        for x in (before, large, small, after):
            assert x.sum() == x.numel()
        anyccl.torch.enable_arena(least_bytes=0)
        assert is_in_arena(torch.ones(100))
        torch.empty(0)
        with pytest.raises(ValueError, match="-1"):
            anyccl.torch.enable_arena(-1)
        del before, large, small, after
        large = torch.ones(MIB)
        assert large.data_ptr() % 64 == 0
        large.resize_(2 * MIB)
        assert is_in_arena(large)
    in_process(body)


def test_memory_goes_back_when_tensors_are_deleted():
    def body():
        anyccl.torch.enable_arena()
        tensors = [torch.ones(3 * MIB) for _ in range(10)] + [torch.ones(20 * MIB)]
        assert arena_bytes() >= 200 * MIB
        tensors.clear()
        gc.collect()
        assert arena_bytes() <= 32 * MIB  # a region is kept for the next one
    in_process(body)


def test_threads_allocate_at_once():
    def body():
        anyccl.torch.enable_arena()

        def churn(seed):
            kept = []
            for i in range(200):
                kept.append(torch.full((20000 + 777 * (i % 50),), float(seed)))
                if i % 3:
                    assert kept.pop(0).eq(seed).all()
        threads = [threading.Thread(target=churn, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    in_process(body)


@pytest.mark.parametrize("ranks", [2, 3])
def test_collectives_give_the_same(ranks):
    def body(rank, with_arena):
        if with_arena and rank != 2:
            anyccl.torch.enable_arena()
        results = []
        for count in (100, 20000, 3 * MIB + 5):
            torch.manual_seed(rank)
            x, y = torch.randn(count), torch.empty(ranks * count)
            dist.all_gather_into_tensor(y, x)
            results.append(y)
            work = dist.all_reduce(x, async_op=True)
            other = y.clone()
            dist.all_reduce(other, op=dist.ReduceOp.MAX)
            work.wait()
            part = torch.empty(count)
            dist.reduce_scatter_tensor(part, y, op=dist.ReduceOp.AVG)
            swapped = torch.empty_like(y)
            dist.all_to_all_single(swapped, y)
            dist.broadcast(part, src=1)
            results += [x, other, part, swapped]
            assert is_in_arena(swapped) == (with_arena and rank != 2 and count > 10000)
        return [r.sum(dtype=torch.float64).item() for r in results]
    assert run_ranks(ranks, body, True) == run_ranks(ranks, body, False)


def test_ddp_gives_the_same():
    def body(rank, with_arena):
        if with_arena:
            anyccl.torch.enable_arena()
        torch.manual_seed(0)
        net = DistributedDataParallel(torch.nn.Sequential(
            torch.nn.Linear(300, 400), torch.nn.ReLU(), torch.nn.Linear(400, 300)))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for step in range(5):
            torch.manual_seed(10 * step + rank)
            optimizer.zero_grad()
            net(torch.randn(8, 300)).pow(2).mean().backward()
            optimizer.step()
        assert is_in_arena(net.module[0].weight) == with_arena
        return [p.sum(dtype=torch.float64).item() for p in net.parameters()]
    assert run_ranks(2, body, True) == run_ranks(2, body, False)


def test_peers_unmap_what_was_freed():
    def body(rank):
        anyccl.torch.enable_arena()
        small = torch.ones(4)
        dist.all_reduce(small)
        for _ in range(20):
            x = torch.ones(20 * MIB)  # too large for a region to be kept
            dist.all_reduce(x)
            assert x[0] == 2 and x[-1] == 2
            del x
        for _ in range(64):
            dist.all_reduce(small)
        return arena_bytes()
    assert all(left < 200 * MIB for left in run_ranks(2, body))


class Images(Dataset):
    def __init__(self):
        self.pixels = torch.arange(32.0 * 100000).reshape(32, 100000)

    def __len__(self):
        return 32

    def __getitem__(self, i):
        row = self.pixels[i]
        row += 1  # of a copy, in a worker
        return row.clone()


def test_workers_of_a_data_loader_read_and_pass_on_tensors():
    def body(rank):
        anyccl.torch.enable_arena()
        images = Images()
        assert is_in_arena(images.pixels)
        expected = images.pixels.clone()
        for epoch in range(2):
            for batch, rows in zip(DataLoader(images, batch_size=4, num_workers=2), expected.split(4)):
                assert batch.equal(rows + 1)
                dist.all_reduce(batch)
                assert batch.equal(2 * (rows + 1))
        assert images.pixels.equal(expected)  # what workers wrote is theirs
    run_ranks(2, body)


def test_forked_child_has_its_own_memory():
    def body():
        anyccl.torch.enable_arena()
        x = torch.ones(MIB)
        child = os.fork()
        if child == 0:
            right = x.sum() == MIB
            x.fill_(7)
            y = torch.ones(MIB)
            os._exit(0 if right and y.sum() == MIB and is_in_arena(y) else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert x.sum() == MIB
    in_process(body)
