"""Tensors of a device: all operations, the order of streams, lifetimes, futures, and what is refused. The device is one
over the simulated driver of CUDA: its memory cannot be touched by the host, and what its streams do is late."""

import itertools
import os
import signal
import threading

import pytest
import torch
import torch.distributed as dist
import test_matrix as matrix
from cells import OPERATORS, is_refused, make, reduced, same, strided
from on_device import device_of, run_on_devices, simulated_device
from ranks import count_of_torchs_own, limit_operations, tell, wait_for

import anyccl.torch

RANKS = 3


class Cell(matrix.Cell):
    """Its tensors are on a device, or on the CPU if that is this rank's."""

    def __init__(self, device, *arguments):
        super().__init__(*arguments)
        self.device = device

    def lay(self, tensor):
        if self.contiguous or tensor.numel() == 0:
            return tensor.to(self.device)
        room = strided(tensor)._base.to(self.device)
        return room[1::2]


def check(cells):
    trouble = []
    for cell, function, *op in cells:
        pairs = [(got.cpu(), expected) for got, expected in function(cell, *op)]
        trouble += [f"{function.__name__} {op} {vars(cell)}: got {got}, not {expected}" for got, expected in pairs
                    if not same(got, expected)]
    assert not trouble, "\n".join(trouble[:20])


def cells(device, functions, sizes, dtypes, operators, layouts=(True, False)):
    for function, numel, dtype, is_async, contiguous, op in itertools.product(
            functions, sizes, dtypes, (False, True), layouts, operators):
        if not op or not is_refused(*op, dtype):
            yield Cell(device, dist.group.WORLD, numel, dtype, is_async, contiguous), function, *op


@pytest.mark.parametrize("on_the_cpu", [None, 1], ids=["on_devices", "one_on_the_cpu"])
def test_reductions(on_the_cpu, tmp_path):
    """A rank may have its tensors on the CPU where others have theirs on devices."""
    def body(rank, device):
        device = torch.device("cpu") if rank == on_the_cpu else device
        dtypes = [torch.float32, torch.int64, torch.bfloat16, torch.bool, torch.complex64]
        check(cells(device, matrix.REDUCTIONS, [0, 1, 7], dtypes, [[one] for one in OPERATORS]))
        check(cells(device, matrix.REDUCTIONS, [5000], [torch.bfloat16], [["MAX"]], [True]))
    run_on_devices(RANKS, tmp_path, body, most_us=30)


@pytest.mark.parametrize("on_the_cpu", [None, 1], ids=["on_devices", "one_on_the_cpu"])
def test_moves(on_the_cpu, tmp_path):
    def body(rank, device):
        device = torch.device("cpu") if rank == on_the_cpu else device
        check(cells(device, matrix.MOVES, [0, 1, 7], [torch.float32, torch.bool, torch.complex64], [[]]))
        check(cells(device, matrix.MOVES, [5000], [torch.uint8], [[]], [True]))
    run_on_devices(RANKS, tmp_path, body, most_us=30)


def test_a_call_comes_after_its_stream(tmp_path):
    """The caller goes on meanwhile."""
    def body(rank, device):
        for stream in (torch.Stream(device), torch.accelerator.current_stream()):
            x, parts = torch.zeros(1000, device=device), [torch.zeros(10, device=device) for _ in range(2)]
            part = torch.zeros(10, device=device)
            torch.accelerator.synchronize()
            with stream, simulated_device.held():
                x.fill_(rank + 1)
                for one in parts:
                    one.fill_(rank + 1)
                works = [dist.all_reduce(x, async_op=True), dist.reduce_scatter(part, parts, async_op=True)]
                assert not any(work.is_completed() for work in works)
            for work in works:
                work.wait()
            assert x.cpu().eq(3).all() and part.cpu().eq(3).all()
    run_on_devices(2, tmp_path, body)


def test_every_stream_sees_the_result(tmp_path):
    def body(rank, device):
        for laid in (lambda x: x, lambda x: strided(x)._base.to(device)[1::2]):
            for is_async in (False, True):
                x = laid(torch.full((999,), rank + 1.0)).to(device)
                work = dist.all_reduce(x, async_op=is_async)
                if is_async:
                    work.wait()
                with torch.Stream(device):
                    seen = x.clone()
                    x.fill_(-1)
                    assert seen.cpu().eq(3).all()
    run_on_devices(2, tmp_path, body)


def test_inputs_may_be_freed_and_memory_used_again(tmp_path):
    def body(rank, device):
        works, results = [], []
        for round_ in range(30):
            x = torch.full((100,), rank + 10.0 * round_, device=device)
            results.append([torch.empty(100, device=device) for _ in range(2)])
            works.append(dist.all_gather(results[-1], x, async_op=True))
            del x
            torch.full((100,), -1.0, device=device)
        for round_, (work, result) in enumerate(zip(works, results)):
            work.wait()
            work = None
            assert [one.cpu()[99].item() for one in result] == [10.0 * round_, 10.0 * round_ + 1]
    run_on_devices(2, tmp_path, body)


def test_works_that_nobody_waits_for(tmp_path):
    """Calls on the same tensor come one after the other."""
    def body(rank, device):
        x, y = torch.ones(100, device=device), torch.zeros(2, 50, device=device).t()
        for _ in range(10):
            dist.all_reduce(x, async_op=True)
            dist.all_gather_single(y, x[:50], async_op=True)
        dist.all_reduce(x)
        assert x.cpu().eq(2 ** 11).all()
        dist.barrier()
        work = dist.broadcast(y, 0, async_op=True)
        work.wait()
        assert y.cpu().eq(2 ** 10).all()
    run_on_devices(2, tmp_path, body)


def test_futures(tmp_path):
    """Callbacks run on the device of the tensors, after the result."""
    def body(rank, device):
        def again(future):
            x = future.value()[0]
            return dist.all_reduce(x * 2, async_op=True).get_future().wait()[0], simulated_device.current_device()
        for _ in range(10):
            x = torch.full((1000,), rank + 1.0, device=device)
            y, current = dist.all_reduce(x, async_op=True).get_future().then(again).wait()
            assert y.cpu().eq(12).all() and current == device.index
        options = dist.AllreduceOptions()
        options.asyncOp = False
        done = dist.group.WORLD.allreduce([x], options).get_future()
        assert done.then(lambda f: f.value()[0] + 1).wait().cpu().eq(7).all()
    run_on_devices(2, tmp_path, body)


def test_a_future_of_a_call_that_fails(tmp_path):
    def body(rank, device):
        failed = dist.all_reduce(torch.ones(3, device=device), async_op=True, op=[dist.ReduceOp.MAX, dist.ReduceOp.SUM][rank])
        with pytest.raises(RuntimeError, match="anyccl: "):
            failed.get_future().wait()
    run_on_devices(2, tmp_path, body)


def test_coalesced_calls(tmp_path):
    def body(rank, device):
        xs = [torch.full((n,), 1.0, device=device) for n in (1, 100, 5000)]
        with dist._coalescing_manager(device=device, async_ops=True) as manager:
            for x in xs:
                dist.all_reduce(x)
        manager.wait()
        assert all(x.cpu().eq(2).all() for x in xs)
        got, sent = torch.empty(100, device=device), torch.full((100,), rank + 1.0, device=device)
        other = 1 - rank
        for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, sent, other), dist.P2POp(dist.irecv, got, other)]):
            work.wait()
        assert got.cpu().eq(other + 1).all()
        received, host = torch.empty(3, device=device), torch.ones(3)  # tensors of each kind in one block
        with dist._coalescing_manager(device=torch.device("cpu"), async_ops=True) as manager:
            dist.all_reduce(host)
            dist.broadcast(received.fill_(rank), 1)
        manager.wait()
        assert host.eq(2).all() and received.cpu().eq(1).all()
    run_on_devices(2, tmp_path, body)


@pytest.mark.parametrize("backend", ["simulated:anyccl", "cpu:anyccl,simulated:anyccl"])
def test_objects_and_barriers(backend, tmp_path):
    def body(rank, device):
        everyone = [None, None]
        dist.all_gather_object(everyone, {"rank": rank, "text": "x" * 1000})
        assert [one["rank"] for one in everyone] == [0, 1]
        objects = [rank, "a" * rank]

        def broadcast():
            dist.broadcast_object_list(objects, src=1, device=device)
        assert count_of_torchs_own(broadcast) == 2 * (rank == 1) and objects == [1, "a"]
        mine = [None]
        dist.scatter_object_list(mine, ["for 0", "for 1"] if rank == 0 else None, src=0)
        assert mine == [f"for {rank}"]
        dist.barrier()
        dist.barrier(device_ids=[device.index])
        dist.barrier(async_op=True).wait()
        if "cpu" in backend:  # torch looks for the backend of CPU tensors
            dist.group.WORLD.monitored_barrier()
    run_on_devices(2, tmp_path, body, backend=backend)


def test_inputs_and_outputs_that_overlap(tmp_path):
    def body(rank, device):
        numel, room = 30, torch.zeros(61, device=device)
        everyone = [make(r, 2 * numel, torch.float32) for r in range(2)]
        room[1:1 + numel] = make(rank, numel, torch.float32).to(device)
        dist.all_gather_single(room[:-1], room[1:1 + numel])
        assert room[:-1].cpu().equal(torch.cat([make(r, numel, torch.float32) for r in range(2)]))
        room[:-1] = everyone[rank].to(device)
        dist.reduce_scatter_single(room[1:1 + numel], room[:-1])
        assert room[1:1 + numel].cpu().equal(sum(everyone)[rank * numel:(rank + 1) * numel])
        room[:-1] = everyone[rank].to(device)
        dist.all_to_all(list(room[1:].chunk(2)), list(room[:-1].chunk(2)))
        assert room[1:].cpu().equal(torch.cat([one[rank * numel:(rank + 1) * numel] for one in everyone]))
    run_on_devices(2, tmp_path, body)


def test_leaves(tmp_path):
    def body(rank, device):
        leaves = make(rank, 20, torch.float32).to(device)
        out = torch.empty(10, device=device)
        anyccl.torch.all_reduce_leaves(out, leaves, 4)
        assert out.cpu().equal(reduced([make(r, 20, torch.float32).view(2, 10)[i] for r in range(2) for i in range(2)], "SUM"))
    run_on_devices(2, tmp_path, body)


def test_what_is_refused(tmp_path):
    """The group can still be used."""
    def body(rank, device):
        other = device_of(rank + 1)
        backend = dist.group.WORLD._get_backend(device)
        assert backend is dist.group.WORLD._get_backend(torch.device("cpu"))
        dist.all_reduce(torch.ones(3, device=device))
        with pytest.raises(RuntimeError, match=f"broadcast: the tensor is on {other}, and this group has had tensors on {device}"):
            dist.broadcast(torch.ones(3, device=other), 0)
        with pytest.raises(RuntimeError, match=f"all_gather: the tensors are on {device} and on {other}"):
            backend.allgather([[torch.ones(3, device=device), torch.ones(3, device=other)]], [torch.ones(3, device=device)])
        with pytest.raises(RuntimeError, match=f"all_gather: the tensors are on cpu and on {device}"):
            backend._allgather_base(torch.ones(6, device=device), torch.ones(3), dist.distributed_c10d.AllgatherOptions())
        with pytest.raises(RuntimeError, match="all_reduce: the tensor is on meta; this backend is for tensors of the CPU and of CUDA"):
            backend.allreduce([torch.ones(3, device="meta")])
        x = torch.full((3,), rank + 1.0, device=device)
        dist.all_reduce(x)
        assert x.cpu().eq(3).all()
        pair = dist.new_group([0, 1])  # another group may have another device
        y = torch.full((3,), rank + 1.0, device=other)
        dist.all_reduce(y, group=pair)
        assert y.cpu().eq(3).all()
    run_on_devices(2, tmp_path, body)


def test_the_first_tensor_of_a_device_while_another_thread_is_in_a_call(tmp_path):
    def body(rank, device):
        x = torch.full((3,), rank + 1.0, device=device)
        if rank == 0:
            thread = threading.Thread(target=dist.barrier)
            thread.start()
            backend = dist.group.WORLD._get_backend(device)
            while backend._get_sequence_number_for_group() == 0:
                pass
            tell("the thread waits")
            dist.all_reduce(x)
            thread.join()
        else:
            wait_for("the thread waits")
            dist.barrier()
            dist.all_reduce(x)
        assert x.cpu().eq(3).all()
    run_on_devices(2, tmp_path, body)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_rank_that_is_killed_is_named(is_async, tmp_path):
    def body(rank, device):
        dist.all_reduce(torch.ones(3, device=device))
        if rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        x = torch.ones(100, device=device)
        with pytest.raises(dist.DistBackendError, match="rank 1.*Connection closed by peer"):
            work = dist.all_reduce(x, async_op=is_async)
            if is_async:
                work.wait()
    assert run_on_devices(2, tmp_path, body)[1] == -signal.SIGKILL


def test_a_stream_that_does_not_come_to_the_call(tmp_path):
    def body(rank, device):
        x = torch.ones(3, device=device)
        dist.all_reduce(x)
        limit_operations(1)
        with pytest.raises(dist.DistBackendError, match="Timed out|timed out"):
            if rank == 1:
                dist.all_reduce(x)
            with torch.Stream(device), simulated_device.held():
                dist.all_reduce(x)
    run_on_devices(2, tmp_path, body)


def test_a_driver_that_fails(tmp_path):
    def body(rank, device):
        x = torch.ones(10000, device=device)  # so many that they are copied, in queues, too
        torch.accelerator.synchronize()
        with pytest.raises(dist.DistBackendError, match="cuMemcpyAsync"):
            for _ in range(100):
                dist.all_reduce(x)
    run_on_devices(2, tmp_path, body, settings_of_rank_0=[("SIMULATED_CUDA_FAIL", "cuMemcpyAsync:20")])


def test_under_gloos_name(tmp_path):
    def body(rank, device):
        x = torch.full((3,), rank + 1.0, device=device)
        group = dist.group.WORLD
        assert isinstance(group._get_backend(device), anyccl.torch.ProcessGroupAnyccl)
        dist.all_reduce(x)
        assert x.cpu().eq(3).all()
        plain = dist.new_group(backend="gloo")
        dist.monitored_barrier(plain)
        assert torch.device("cuda") in plain._device_types
    anyccl.torch.replace_gloo()
    run_on_devices(2, tmp_path, body, backend="cpu:gloo,simulated:gloo")


def test_groups_of_fewer_ranks_and_flight_records(tmp_path):
    def body(rank, device):
        dist.all_reduce(torch.ones(3, device=device))
        with open(anyccl.torch.write_flight_record(f"{tmp_path}/record_"), "rb") as record:
            assert b"all_reduce" in record.read()
        if rank == 2:
            os._exit(0)
        with pytest.raises(dist.DistBackendError, match="rank 2"):
            for _ in range(100):
                dist.all_reduce(torch.ones(3, device=device))
        left = anyccl.torch.carry_on()
        x = torch.full((3,), rank + 1.0, device=device)
        dist.all_reduce(x, group=left)
        assert x.cpu().eq(3).all()
    run_on_devices(3, tmp_path, body, backend="simulated:anyccl")


def test_a_group_that_is_shrunk(tmp_path):
    def body(rank, device):
        dist.all_reduce(torch.ones(3, device=device))
        if rank == 2:
            return
        left = dist.shrink_group([2])
        for where in (torch.device("cpu"), device):
            x = torch.full((3,), rank + 1.0, device=where)
            dist.all_reduce(x, group=left)
            assert x.cpu().eq(3).all()
    run_on_devices(3, tmp_path, body)


def test_the_plain_name_is_for_cuda_too(tmp_path):
    """One backend is for both, also in a group of the ranks that are left."""
    def body(rank, device):
        def backends(group):
            return {one.type: group._get_backend(one) for one in group._device_types}
        dist.barrier()  # all have joined
        mine = backends(dist.group.WORLD)
        assert mine.keys() == {"cpu", "cuda"} and mine["cpu"] is mine["cuda"]
        if rank == 2:
            os._exit(0)
        with pytest.raises(dist.DistBackendError):  # the other rank may still be in the barrier above
            for _ in range(100):
                dist.barrier()
        left = backends(anyccl.torch.carry_on())
        assert left.keys() == mine.keys() and left["cpu"] is left["cuda"] is not mine["cpu"]
    run_on_devices(3, tmp_path, body, backend="anyccl")
