"""Calls beside each other: threads, a batch that is under way, a barrier that waits, the backend of another device."""

import datetime
import os
import signal
import tempfile
import threading
import time

import pytest
import torch
import torch.distributed as dist
from ranks import fork_ranks, run_ranks
from torch._C._distributed_c10d import Backend as AnyBackend

import anyccl.torch


def beside_a_batch(call):
    """What `call` gives while another thread is between the first and the last message of a batch."""
    inside, go, peer = threading.Event(), threading.Event(), 1 - dist.get_rank()
    failures = []

    def batch():
        received = torch.zeros(1)
        ops = [dist.P2POp(dist.isend, torch.full((1,), 7.0), peer), dist.P2POp(dist.irecv, received, peer)]
        real = ops[1].op

        def slow(*args, **kwargs):
            inside.set()
            assert go.wait(20)
            return real(*args, **kwargs)
        ops[1].op = slow
        for work in dist.batch_isend_irecv(ops):
            work.wait()
        if received.item() != 7:
            failures.append(received)
    thread = threading.Thread(target=batch)
    thread.start()
    assert inside.wait(20)
    try:
        return call()
    finally:
        go.set()
        thread.join()
        assert not failures


def test_collectives_beside_a_batch_of_another_thread():
    def body(rank):
        def all_reduce():
            x = torch.ones(3)
            dist.all_reduce(x)
            assert x.eq(2).all()

        def asynchronous():
            x = torch.ones(3)
            work = dist.all_reduce(x, async_op=True)
            work.wait()
            assert x.eq(2).all() and work.result()[0] is x

        def gather():
            out = torch.full((2,), -1.0)
            dist.all_gather_single(out, torch.tensor([float(rank)]))
            assert out.tolist() == [0, 1]

        def scatter():
            out = torch.full((1,), -1.0)
            dist.reduce_scatter_single(out, torch.tensor([1.0, 2.0]))
            assert out.item() == 2 * (rank + 1)

        def coalesced():
            xs = [torch.ones(3), torch.ones(5)]
            with dist._coalescing_manager():
                for x in xs:
                    dist.all_reduce(x)
            assert all(x.eq(2).all() for x in xs)

        def objects():
            got = [None, None]
            dist.all_gather_object(got, rank)
            assert got == [0, 1]
        for call in (all_reduce, asynchronous, gather, scatter, coalesced, objects, dist.barrier):
            beside_a_batch(call)
    run_ranks(2, body)


def test_a_barrier_that_waits_leaves_the_store_to_others():
    server = dist.TCPStore("127.0.0.1", 0, None, True, wait_for_workers=False)

    def body(rank):
        store = dist.TCPStore("127.0.0.1", server.port, None, False)
        dist.init_process_group("anyccl", store=store, rank=rank, world_size=2, timeout=datetime.timedelta(seconds=30))
        first, second = dist.new_group([0, 1]), dist.new_group([0, 1])
        limit = datetime.timedelta(seconds=20)
        waits = threading.Thread(target=first.monitored_barrier, args=(limit,))
        if rank == 1:
            waits.start()
            time.sleep(0.1)  # it most likely waits now
            store.set("rank 1 goes on", "1")
        else:
            store.wait(["rank 1 goes on"], limit)
        second.monitored_barrier(limit)  # the ranks come to the two in another order
        third = dist.new_group([0, 1])
        dist.barrier(third)
        if rank == 0:
            waits.start()
        waits.join()
        dist.barrier()
    fork_ranks(2, body)


@pytest.mark.parametrize("ends", ["killed", "exits"])
def test_a_barrier_hears_that_rank_0_is_gone(ends):
    def body(rank):
        if rank == 0:
            os.kill(os.getpid(), signal.SIGKILL) if ends == "killed" else os._exit(0)
        with pytest.raises(RuntimeError, match="rank 0 .* died"):
            dist.group.WORLD.monitored_barrier(datetime.timedelta(seconds=20))
        os._exit(7)
    assert run_ranks(2, body)[1] == 7


class OtherOptions(AnyBackend.Options):
    """Those of another backend, as NCCL's: of a class of their own."""

    def __init__(self):
        super().__init__("other", datetime.timedelta(seconds=20))


def make_other(store, rank, size, timeout):
    """Stands for a backend of devices, with options of its own."""
    return anyccl.torch.ProcessGroupAnyccl(store, rank, size, anyccl.torch.Options())


def test_options_of_another_backend_are_ignored():
    dist.Backend.register_backend("stand_in", make_other, devices=["cuda"])

    def body(rank, file):
        dist.init_process_group("cpu:anyccl,cuda:stand_in", store=dist.FileStore(file, 2), rank=rank, world_size=2,
                                timeout=datetime.timedelta(seconds=30), pg_options=OtherOptions())
        for group in (None, dist.new_group([0, 1], pg_options=OtherOptions())):
            x = torch.ones(5)
            dist.all_reduce(x, group=group)
            assert x.eq(2).all()
        with pytest.raises(TypeError, match="pg_options must be anyccl.torch.Options, not builtins.str"):
            dist.new_group([0, 1], backend="anyccl", pg_options="fast")
    with tempfile.TemporaryDirectory() as folder:
        fork_ranks(2, body, os.path.join(folder, "store"))


def test_stores_with_set_get_and_wait_are_enough():
    class Little(dist.Store):
        """A dict of a server, without check and delete."""

        def __init__(self, store):
            super().__init__()
            self.store = store

        def set(self, key, value):
            self.store.set(key, value)

        def get(self, key):
            return self.store.get(key)

        def wait(self, keys, timeout=datetime.timedelta(seconds=30)):
            self.store.wait(keys, timeout)

    server = dist.TCPStore("127.0.0.1", 0, None, True, wait_for_workers=False)

    def body(rank):
        store = Little(dist.TCPStore("127.0.0.1", server.port, None, False))
        dist.init_process_group("anyccl", store=store, rank=rank, world_size=2, timeout=datetime.timedelta(seconds=30))
        x = torch.ones(1)
        dist.all_reduce(x)
        assert x.item() == 2
    fork_ranks(2, body)


def test_what_is_waited_for_is_forgotten_by_torch():
    from torch.distributed._functional_collectives import allow_inflight_collective_as_graph_input_ctx
    registered = torch._C._distributed_c10d._get_work_registry_size

    def body(rank):
        with allow_inflight_collective_as_graph_input_ctx():
            for asynchronous in (False, True):
                for shape in ((4,), (4, 2)):
                    x = torch.ones(*shape)[..., 0] if len(shape) > 1 else torch.ones(4)  # or strided
                    work = dist.all_reduce(x, async_op=asynchronous)
                    if asynchronous:
                        work.wait()
                    assert registered() == 0
            dist.all_reduce_coalesced([torch.ones(1), torch.ones(2)], async_op=True).wait()  # waits for a future
            assert registered() == 0
            x = torch.ones(4)
            dist.all_reduce(x, async_op=True)
            torch.ops._c10d_functional.wait_tensor(x)
            assert registered() == 0 and x.eq(2).all()
    run_ranks(2, body)


def test_an_operation_keeps_the_memory_that_it_was_given():
    def body(rank):
        for strided in (False, True):
            whole = torch.ones(1 << 21, 2)
            x = whole[:, 0] if strided else torch.ones(1 << 22)
            before = torch.empty(0).set_(x.untyped_storage(), 0, (x.numel(),), (2 if strided else 1,))
            if rank == 0:
                time.sleep(0.1)  # so that the operation of rank 1 is not complete
            work = dist.all_reduce(x, async_op=True)
            x.data = torch.full((3,), 5.0)
            work.wait()
            assert x.eq(5).all() and before.eq(2).all()
    run_ranks(2, body)


def test_time_limits_beyond_the_clock():
    def body(rank, file):
        forever = datetime.timedelta(days=400 * 365)
        dist.init_process_group("anyccl", store=dist.FileStore(file, 2), rank=rank, world_size=2, timeout=forever)
        x = torch.ones(1)
        work = dist.all_reduce(x, async_op=True)
        work.wait(forever)
        assert x.item() == 2
        dist.group.WORLD.monitored_barrier(forever)
    with tempfile.TemporaryDirectory() as folder:
        fork_ranks(2, body, os.path.join(folder, "store"))
