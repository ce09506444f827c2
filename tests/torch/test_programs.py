"""What programs do with a group: objects, sparse tensors, DDP and its hooks, profiles, splits, meshes."""

import tempfile

import pytest
import torch
import torch._dynamo  # noqa: F401  DDP and functional collectives import it: once, and not in every rank
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from ranks import fork_ranks, join, run_ranks
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

import anyccl.torch


def test_object_collectives():
    def body(rank):
        mine = {"rank": rank, "list": [1] * (1000 * rank)}
        everyone = [{"rank": r, "list": [1] * (1000 * r)} for r in range(3)]
        got = [None] * 3
        dist.all_gather_object(got, mine)
        assert got == everyone
        got = [None] * 3 if rank == 1 else None
        dist.gather_object(mine, got, dst=1)
        assert got is None or got == everyone
        got = [mine, "x"]
        dist.broadcast_object_list(got, src=2)
        assert got == [everyone[2], "x"]
        got = [None]
        dist.scatter_object_list(got, everyone if rank == 0 else None, src=0)
        assert got == [mine]
        if rank == 0:
            dist.send_object_list([mine], 1)
        elif rank == 1:
            got = [None]
            dist.recv_object_list(got, 0)
            assert got == [everyone[0]]
    run_ranks(3, body)


def test_object_collectives_in_a_compiled_function():
    def body(rank):
        @torch.compile(backend="eager")
        def step(x):
            got = [None] * 2
            dist.all_gather_object(got, "object")
            return x + len(got), got
        y, got = step(torch.ones(3))
        assert y.eq(3).all() and got == ["object"] * 2
    run_ranks(2, body)


@pytest.mark.parametrize("is_async", [False, True])
def test_sparse_sums(is_async):
    def sparse(rank, dense_dim):
        indices = torch.tensor([[0, rank, rank]])  # not coalesced, and different on every rank
        values = torch.arange(3.0).reshape([3] + [1] * dense_dim).expand([3] + [4] * dense_dim) + rank
        return torch.sparse_coo_tensor(indices, values, [5] + [4] * dense_dim)

    def body(rank):
        for dense_dim in (0, 1, 2):
            x = sparse(rank, dense_dim)
            expected = sum(sparse(r, dense_dim).to_dense() for r in range(3))
            works = [dist.all_reduce(x, async_op=is_async)]
            y = torch.sparse_coo_tensor([2, 4])  # nothing at all
            works.append(dist.all_reduce(y, async_op=is_async))
            for work in works if is_async else []:
                work.wait()
            assert x.is_sparse and x.to_dense().equal(expected)
            assert y.to_dense().equal(torch.zeros(2, 4))
        x = sparse(rank, 0).coalesce()  # which is not copied when the sum begins
        works = [dist.all_reduce(x, async_op=is_async) for _ in range(4)]
        for work in works if is_async else []:
            work.wait()
        assert x.to_dense().equal(27 * sum(sparse(r, 0).to_dense() for r in range(3)))
        with pytest.raises(RuntimeError, match="Sparse dimensions or sizes do not match"):
            dist.all_reduce(torch.sparse_coo_tensor([2, 4 + rank]))
        with pytest.raises(RuntimeError, match="support only ReduceOp.SUM"):
            dist.all_reduce(sparse(rank, 0), op=dist.ReduceOp.MAX)
        dist.barrier()
    run_ranks(3, body)


def train(rank, hook=None, steps=4, **options):
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(20, 50), torch.nn.ReLU(), torch.nn.Linear(50, 3))
    ddp = DistributedDataParallel(model, **options)
    if hook is not None:
        hook(ddp)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    for step in range(steps):
        x = torch.arange(80.0).reshape(4, 20).sin() * (rank + step + 1)
        optimizer.zero_grad()
        ddp(x).square().mean().backward()
        optimizer.step()
    return torch.cat([p.detach().flatten() for p in model.parameters()])


HOOKS = {
    "none": None,
    "fp16": lambda ddp: ddp.register_comm_hook(None, default_hooks.fp16_compress_hook),
    # Not by its own name, which DDP takes for NCCL only.
    "bf16": lambda ddp: ddp.register_comm_hook(
        None, lambda state, bucket: default_hooks.bf16_compress_hook(state, bucket)),
    "powersgd": lambda ddp: ddp.register_comm_hook(
        powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=2, start_powerSGD_iter=2),
        powerSGD_hook.powerSGD_hook),
}


@pytest.mark.parametrize("hook", HOOKS)
def test_ddp_trains_as_with_gloo(hook):
    def body(rank):
        weights = train(rank, HOOKS[hook])
        everyone = [torch.empty_like(weights) for _ in range(2)]
        dist.all_gather(everyone, weights)
        assert everyone[0].equal(everyone[1])
        return weights.tolist()
    ours, gloo = (torch.tensor(run_ranks(2, body, backend=name)[0]) for name in ("anyccl", "gloo"))
    assert torch.allclose(ours, gloo, rtol=1e-3, atol=1e-4)


def test_ddp_in_small_buckets():
    def body(rank):
        weights = train(rank, bucket_cap_mb=0.0005)
        assert weights.equal(train(rank))  # two ranks: the same sums in any order
    run_ranks(2, body)


@pytest.mark.parametrize("is_async", [False, True])
def test_profiles_show_operations(is_async):
    def body(rank):
        x, y = torch.ones(3, 4), torch.ones(3, 4)
        with torch.autograd.profiler.profile(record_shapes=True) as profile:
            works = [dist.all_reduce(x, async_op=is_async), dist.broadcast(x, 0, async_op=is_async),
                     dist.reduce(x, 0, async_op=is_async), dist.all_gather([x, y], y.clone(), async_op=is_async),
                     dist.reduce_scatter(x, [y, y], async_op=is_async), dist.barrier(async_op=is_async),
                     dist.gather(x, [y, y.clone()] if rank == 0 else None, async_op=is_async),
                     dist.scatter(x, [y, y.clone()] if rank == 0 else None, async_op=is_async),
                     dist.all_to_all_single(torch.ones(2), torch.ones(2), async_op=is_async),
                     dist.irecv(x, 1 - rank), dist.isend(y, 1 - rank)]
            for work in works:
                if work is not None:
                    work.wait()
        for name in ("all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter", "barrier", "gather",
                     "scatter", "all_to_all", "recv", "send"):
            events = [e for e in profile.function_events if e.name == f"anyccl:{name}"]
            assert len(events) == 1, f"{name}: {events}"
            assert events[0].is_async
            if name in ("all_reduce", "broadcast", "reduce", "send", "recv"):
                assert events[0].input_shapes == [[3, 4]]
    run_ranks(2, body)


def test_splitting():
    def body(rank):
        group = dist.group.WORLD
        backend = group._get_backend(torch.device("cpu"))
        assert backend.supports_splitting and backend.supports_coalescing
        part = group.split_group([2, 0], group_name="part")
        if rank == 1:
            assert part is None
        else:
            x = torch.ones(2)
            part.allreduce([x]).wait()
            assert x.eq(2).all() and part.size() == 2
        dist.barrier()
    run_ranks(3, body)


@pytest.mark.parametrize("backend", ["cpu:anyccl", "cpu:anyccl,cuda:gloo"])
def test_names_of_several_backends(backend):
    def body(rank):
        x = torch.ones(3)
        dist.all_reduce(x)
        assert x.eq(2).all()
        assert type(dist.group.WORLD._get_backend(torch.device("cpu"))) is anyccl.torch.ProcessGroupAnyccl
        dist.barrier()
        group = dist.new_group([0, 1])
        dist.all_reduce(x, group=group)
        dist.all_gather_object([None, None], "x", group=group)
    run_ranks(2, body, backend=backend)


def test_as_the_default_for_cpus():
    def body(rank, folder):
        anyccl.torch.use_as_cpu_default()
        join(rank, 2, folder, backend=None)
        assert type(dist.group.WORLD._get_backend(torch.device("cpu"))) is anyccl.torch.ProcessGroupAnyccl
        mesh = torch.distributed.init_device_mesh("cpu", (2,))
        x = torch.ones(3)
        dist.all_reduce(x, group=mesh.get_group())
        assert x.eq(2).all()
        group = dist.new_group([0, 1])
        assert type(group._get_backend(torch.device("cpu"))) is anyccl.torch.ProcessGroupAnyccl
        dist.all_reduce(x, group=group)
        assert x.eq(4).all()
        dist.destroy_process_group()
    with tempfile.TemporaryDirectory() as folder:
        fork_ranks(2, body, folder)


def test_functional_collectives():
    def body(rank):
        x = torch.full((4,), float(rank + 1))
        assert functional.all_reduce(x, "sum", [0, 1]).eq(3).all()
        assert functional.all_reduce(x, "avg", [0, 1]).eq(1.5).all()
        assert functional.all_gather_tensor(x, 0, [0, 1]).shape == (8,)
        assert functional.reduce_scatter_tensor(x, "sum", 0, [0, 1]).eq(3).all()
        assert functional.all_to_all_single(x, None, None, [0, 1]).eq(torch.tensor([1., 1, 2, 2])).all()
        assert functional.broadcast(x, 1, [0, 1]).eq(2).all()
        outs = functional.all_reduce_coalesced([x, x], "sum", [0, 1])
        assert all(out.eq(3).all() for out in outs)
    run_ranks(2, body)


def test_rank_0_may_come_last():
    def body(rank, folder):
        if rank == 0:
            import time
            time.sleep(0.5)
        join(rank, 3, folder)
        x = torch.ones(1)
        dist.all_reduce(x)
        assert x == 3
        dist.destroy_process_group()
    with tempfile.TemporaryDirectory() as folder:
        fork_ranks(3, body, folder)
