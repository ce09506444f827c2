"""Options of groups that say what is promised of results: levels of reproducibility, verification."""

import os
import tempfile

import pytest
import torch
import torch.distributed as dist
from ranks import fork_ranks, join

from anyccl.torch import Options, all_reduce_leaves


def in_groups(body, *options_of_rank):
    """body(rank) in a group of two ranks, with these options of each."""
    def joined(rank, folder):
        join(rank, 2, folder, pg_options=options_of_rank[rank % len(options_of_rank)])
        body(rank)
        dist.destroy_process_group()
    with tempfile.TemporaryDirectory() as folder:
        fork_ranks(2, joined, folder)


def test_a_level_refuses_what_has_not_its_order():
    def body(rank):
        os.environ["ANYCCL_ALGO"] = "all_reduce:ring"
        group = dist.new_group([0, 1], pg_options=Options(reproducible=2))
        with pytest.raises(RuntimeError, match="all_reduce/ring .* does not add up by the aligned tree"):
            dist.all_reduce(torch.ones(100), group=group)
        integers = torch.full([100], rank + 1)
        dist.all_reduce(integers, group=group)  # exact in any order
        assert integers.eq(3).all()
        ring = torch.ones(100)
        dist.all_reduce(ring)  # the first group has the default
        assert ring.eq(2).all()
    in_groups(body, Options())


def test_verification_refuses_what_it_cannot_check_and_passes_the_rest():
    def body(rank):
        x = torch.full([1000], float(rank + 1))
        dist.all_reduce(x)
        assert x.eq(3).all()
        with pytest.raises(RuntimeError, match="prod"):
            dist.all_reduce(x, op=dist.ReduceOp.PRODUCT)
        split = dist.group.WORLD.split_group([1, 0], group_name="part")
        y = torch.ones(3)
        with pytest.raises(RuntimeError, match="prod"):  # as in the group that it was split from
            how = dist.AllreduceOptions()
            how.reduceOp = dist.ReduceOp.PRODUCT
            split.allreduce([y], how).wait()
    in_groups(body, Options(verify=1))


def test_ranks_that_differ_are_an_error_that_names_both():
    def body(rank, folder):
        with pytest.raises(dist.DistBackendError, match="config->reproducible"):
            join(rank, 2, folder, pg_options=Options(reproducible=2 + rank))
            dist.barrier()
    with tempfile.TemporaryDirectory() as folder:
        fork_ranks(2, body, folder)


def test_values_are_checked():
    def body(rank, folder):
        with pytest.raises(RuntimeError, match="reproducible is 9 instead of 0 to 3"):
            join(rank, 2, folder, pg_options=Options(reproducible=9))
            dist.barrier()
    with tempfile.TemporaryDirectory() as folder:
        fork_ranks(2, body, folder)


def test_sums_of_bfloat16_may_be_rounded_once():
    x = [1.0, 2.0 ** -8, 2.0 ** -8, 2.0 ** -8]  # a float32 has their sum; rounded in each step they vanish

    def body(rank, folder):
        os.environ["ANYCCL_ALGO"] = "all_reduce:ring;reduce_scatter:ring;reduce:binomial"
        with pytest.raises(ValueError, match="accumulate is torch.float32"):
            Options(accumulate=torch.bfloat16)
        join(rank, 4, folder, pg_options=Options(accumulate=torch.float32))
        mine = torch.full([8], x[rank], dtype=torch.bfloat16)
        out, to_root, sums = torch.empty(2, dtype=torch.bfloat16), mine.clone(), mine.clone()
        dist.reduce_scatter_tensor(out, mine)
        dist.reduce(to_root, 0)
        dist.all_reduce(sums)
        assert out.eq(1 + 2.0 ** -6).all()
        assert sums.eq(out[0]).all() and (rank > 0 or to_root.eq(out[0]).all())
        highest = mine.clone()
        dist.all_reduce(highest, dist.ReduceOp.MAX)
        assert highest.eq(1).all()
        dist.destroy_process_group()
    with tempfile.TemporaryDirectory() as folder:
        fork_ranks(4, body, folder)


def test_leaves_have_the_same_bits_on_any_number_of_ranks():
    leaves = torch.randn(8, 1000, generator=torch.Generator().manual_seed(1)).bfloat16()

    def body(rank, size, folder):
        join(rank, size, folder)
        mine = leaves[rank * 8 // size:(rank + 1) * 8 // size]
        wide, small = torch.empty(1000), torch.empty(1000, dtype=torch.bfloat16)
        all_reduce_leaves(wide, mine, 8)
        all_reduce_leaves(small, mine, 8, dist.ReduceOp.AVG, async_op=True).wait()
        with pytest.raises(ValueError, match="elements instead of"):
            all_reduce_leaves(wide[:-1], mine, 8)
        dist.destroy_process_group()
        return wide.numpy().tobytes() + small.view(torch.int16).numpy().tobytes()

    results = set()
    for size in (1, 2, 4, 8):
        with tempfile.TemporaryDirectory() as folder:
            results.update(fork_ranks(size, body, size, folder))
    expected = leaves.float()
    while len(expected) > 1:
        expected = expected[::2] + expected[1::2]
    assert len(results) == 1 and results.pop().startswith(expected.numpy().tobytes())


def test_leaves_need_a_group_of_anyccl():
    def body(rank, folder):
        join(rank, 2, folder, backend="gloo")
        with pytest.raises(ValueError, match="not of gloo"):
            all_reduce_leaves(torch.empty(3), torch.empty(4, 3), 8)
        dist.destroy_process_group()
    with tempfile.TemporaryDirectory() as folder:
        fork_ranks(2, body, folder)


def test_reduce_scatter_of_bfloat16_into_float32():
    """As FSDP wants its shards: nothing is rounded."""
    def body(rank):
        x = torch.full([6], 1 + 2.0 ** -7, dtype=torch.bfloat16)  # with a one in its last bit
        out = torch.empty(3)
        dist.reduce_scatter_tensor(out, x)
        assert out.eq(2 * (1 + 2.0 ** -7)).all()
        x[0] = 2.0 ** -7 if rank == 0 else 4.0
        x[3] = 2.0 ** -7 if rank == 0 else 4.0
        dist.reduce_scatter_tensor(out, x)
        assert out[0] == 4 + 2.0 ** -7  # which has no bfloat16
        with pytest.raises(RuntimeError, match="the type of the result"):
            dist.reduce_scatter_tensor(torch.empty(3, dtype=torch.int32), x)
    in_groups(body, Options())
