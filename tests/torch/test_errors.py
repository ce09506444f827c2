"""What goes wrong is said: which operation, which rank, in words that programs look for."""

import datetime
import os
import resource
import signal
import tempfile
import threading
import time

import pytest
import torch
import torch.distributed as dist
from ranks import BACKEND, fork_ranks, join, limit_operations, run_ranks, tell, wait_for

import anyccl.torch

TIMED_OUT = " (Timed out|closed|timeout) "  # what torch's own tests look for
WORDS = "timed out after", "Connection closed by peer"  # what programs look for


def backend():
    return dist.group.WORLD._get_backend(torch.device("cpu"))


@pytest.mark.parametrize("is_async", [False, True])
def test_a_late_rank_is_named_by_the_timeout(is_async):
    def body(rank):
        limit_operations(1)
        if rank == 2:
            wait_for("0 timed out", "1 timed out")
            return
        begin = time.monotonic()
        with pytest.raises(dist.DistBackendError, match=TIMED_OUT) as caught:
            work = dist.all_reduce(torch.ones(3), async_op=is_async)
            if is_async:
                work.wait()
        assert 0.9 < time.monotonic() - begin < 30
        assert "rank 2" in str(caught.value) and WORDS[0] in str(caught.value)
        assert backend().get_error() != 0
        tell(f"{rank} timed out")
    run_ranks(3, body)


def test_a_barrier_times_out():
    def body(rank):
        limit_operations(0.5)
        if rank == 0:
            with pytest.raises(dist.DistBackendError, match=TIMED_OUT):
                dist.barrier()
            tell("timed out")
        else:
            wait_for("timed out")
    run_ranks(2, body)


def test_the_timeout_of_a_group_and_of_a_call():
    def body(rank):
        group = dist.new_group([0, 1], timeout=datetime.timedelta(seconds=20))
        if rank == 0:
            begin = time.monotonic()
            options = dist.AllreduceOptions()
            options.timeout = datetime.timedelta(milliseconds=300)
            with pytest.raises(dist.DistBackendError, match=TIMED_OUT):
                group.allreduce([torch.ones(1)], options).wait()
            assert time.monotonic() - begin < 30
            backend()._set_default_timeout(datetime.timedelta(milliseconds=300))
            begin = time.monotonic()
            with pytest.raises(dist.DistBackendError, match=TIMED_OUT):
                dist.recv(torch.ones(1), 1)
            assert time.monotonic() - begin < 30
            tell("timed out")
        else:
            wait_for("timed out")
    run_ranks(2, body)


@pytest.mark.parametrize("what", ["all_reduce", "recv", "pending"])
def test_a_rank_that_dies_is_named(what):
    def body(rank):
        work = dist.all_reduce(torch.ones(3), async_op=True) if what == "pending" and rank == 0 else None
        if rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        with pytest.raises(dist.DistBackendError, match="anyccl: .*rank 1.*" + WORDS[1]):
            if work is not None:
                work.wait()
            elif what == "recv":
                dist.recv(torch.ones(3), 1)
            else:
                dist.all_reduce(torch.ones(3))
        return "seen"
    assert run_ranks(2, body) == ["seen", -signal.SIGKILL]


def exchange_with_1():
    x = torch.ones(3)
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, x, 1), dist.P2POp(dist.irecv, x, 1)]):
        work.wait()


CALLS = {
    "all_reduce": lambda: dist.all_reduce(torch.ones(3)),
    "all_reduce of parts": lambda: dist.all_reduce_coalesced([torch.ones(3), torch.ones(70_000)]),
    "broadcast": lambda: dist.broadcast(torch.ones(3), 0),
    "reduce": lambda: dist.reduce(torch.ones(3), 2),
    "gather": lambda: dist.gather(torch.ones(3), [torch.ones(3)] * 3 if dist.get_rank() == 0 else None),
    "all_to_all": lambda: dist.all_to_all_single(torch.ones(3), torch.ones(3)),
    "all_gather_object": lambda: dist.all_gather_object([None] * 3, "object"),
    "sparse": lambda: dist.all_reduce(torch.eye(3).to_sparse()),
    "work": lambda: dist.all_reduce(torch.ones(3), async_op=True).wait(),
    "future": lambda: dist.all_reduce(torch.ones(3), async_op=True).get_future().wait(),
    "recv": lambda: dist.recv(torch.ones(3), 1),
    "send": lambda: dist.send(torch.ones(1 << 20), 1),
    "exchange": exchange_with_1,
    "barrier": lambda: dist.barrier(),
    "monitored_barrier": lambda: dist.group.WORLD.monitored_barrier(datetime.timedelta(seconds=1)),
    "new_group": lambda: dist.new_group(timeout=datetime.timedelta(seconds=1)),
}


@pytest.mark.parametrize("call", CALLS)
def test_every_call_raises_an_error_of_torch_distributed_that_names_the_rank(call):
    def body(rank):
        dist.all_reduce(torch.ones(3))
        if rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        caught = None
        while caught is None:  # a rank that only gives may not need the dead one at once
            try:
                CALLS[call]()
            except dist.DistError as error:
                caught = str(error)
        if call not in ("monitored_barrier", "new_group") or rank == 0:
            assert "rank 1" in caught.lower(), caught
        return "seen"
    assert run_ranks(3, body) == ["seen", -signal.SIGKILL, "seen"]


def test_a_fault_of_the_network_is_an_error_of_the_network():
    def body(rank, folder):
        os.environ.update(ANYCCL_TRANSPORT="tcp", ANYCCL_CHECKSUM="1", ANYCCL_CHAOS="seed=3,corrupt=1e-5")
        with pytest.raises(dist.DistNetworkError, match="rank 1.*damaged|rank 0.*damaged"):
            join(rank, 2, folder)
            while True:
                dist.all_reduce(torch.ones(50_000))
    with tempfile.TemporaryDirectory() as folder:
        fork_ranks(2, body, folder)


def test_different_calls_are_named():
    def body(rank):
        with pytest.raises(dist.DistBackendError, match="anyccl: ") as caught:
            if rank == 0:
                dist.all_reduce(torch.ones(3))
            else:
                dist.broadcast(torch.ones(3), 0)
        text = str(caught.value)
        assert "rank" in text
    run_ranks(2, body)


def test_a_missing_rank_is_named_when_joining():
    def body(rank, folder):
        with pytest.raises(dist.DistBackendError, match="Timed out after .* waiting for rank 2 of 3"):
            join(rank, 3, folder, timeout_s=3)
    with tempfile.TemporaryDirectory() as folder:
        fork_ranks(2, body, folder)


def test_a_missing_rank_0_is_named_when_joining():
    def body(rank, folder):
        with pytest.raises(dist.DistBackendError, match="waiting for rank 0 to join"):
            join(rank + 1, 2, folder, timeout_s=0.5)
    with tempfile.TemporaryDirectory() as folder:
        fork_ranks(1, body, folder)


@pytest.mark.parametrize("poor", [0, 1])
def test_a_rank_that_cannot_join_tells_the_others_why(poor):
    """At once, by the store: no connection can. A third rank, which hears of it by a connection, too, names it."""
    def body(rank, folder):
        store = dist.FileStore(folder + "/store", 3)
        if rank == poor:
            used = len(os.listdir("/proc/self/fd"))  # with the one of this look, which the store needs
            resource.setrlimit(resource.RLIMIT_NOFILE, (used, used))
        begin = time.monotonic()
        with pytest.raises(dist.DistBackendError, match=f"rank {poor} cannot join: .*ulimit -n"):
            dist.init_process_group("anyccl", store=store, rank=rank, world_size=3,
                                    timeout=datetime.timedelta(seconds=60))
        assert time.monotonic() - begin < 50
    with tempfile.TemporaryDirectory() as folder:
        fork_ranks(3, body, folder)


def of_storage(size):
    """A tensor of four elements whose storage has been made this many bytes long, as FSDP frees its."""
    x = torch.ones(4)
    x.untyped_storage().resize_(size)
    return x


def test_wrong_arguments_leave_the_group_usable():
    def body(rank):
        group, ones = dist.group.WORLD, torch.ones(4)
        for call, kind, text in [
                (lambda: dist.all_gather([ones], ones), RuntimeError, "expected length 2, got 1"),
                (lambda: dist.all_gather_single(torch.ones(5), ones), ValueError, "world_size times"),
                (lambda: dist.all_gather_single(torch.ones(8).int(), ones), TypeError, "same type"),
                (lambda: dist.reduce_scatter_single(ones, torch.ones(5)), ValueError, "world size"),
                (lambda: dist.broadcast(ones, group_src=7), RuntimeError, "invalid root rank: 7"),
                (lambda: group.scatter(ones, [ones, ones], 1 - rank), RuntimeError, "requires empty input on non-root"),
                (lambda: group.gather([ones, ones], ones, 1 - rank), RuntimeError,
                 "requires empty output on non-root"),
                (lambda: dist.all_to_all_single(ones, torch.ones(3)), RuntimeError, "does not divide equally"),
                (lambda: dist.all_to_all_single(ones, ones, [1, 1], [2, 2]), RuntimeError, "Split sizes"),
                (lambda: dist.all_reduce(ones, op=dist.ReduceOp.BAND), RuntimeError, "non-integral"),
                (lambda: dist.all_reduce(torch.ones(2, 2).to_sparse_csr()), (RuntimeError, NotImplementedError),
                 ".*"),
                (lambda: dist.all_reduce(torch.ones(1).expand(4)), RuntimeError, "overlap|single memory"),
                (lambda: dist.all_reduce(of_storage(0)), RuntimeError, "4 elements and a storage of 0 bytes"),
                (lambda: dist.broadcast(of_storage(12), 0), RuntimeError, "4 elements and a storage of 12 bytes"),
        ]:
            with pytest.raises(kind, match=text) as caught:
                call()
            assert not isinstance(caught.value, dist.DistError)
        dist.all_reduce(ones)
        assert ones.eq(2).all()
    run_ranks(2, body)


def test_abort_ends_what_is_blocked():
    def body(rank):
        if rank == 1:
            wait_for("aborted")
            with pytest.raises(dist.DistBackendError, match="rank 0"):
                for _ in range(2):  # what the first one needs was there before the abort
                    dist.all_reduce(torch.ones(3))
            return
        pending = dist.irecv(torch.ones(3), 1)
        threading.Timer(0.2, backend().abort).start()
        begin = time.monotonic()
        with pytest.raises(dist.DistBackendError, match="anyccl: "):
            dist.all_reduce(torch.ones(3))
        with pytest.raises(dist.DistBackendError, match="anyccl: "):
            pending.wait()
        assert time.monotonic() - begin < 30
        tell("aborted")
        with pytest.raises(dist.DistBackendError, match="shut down or aborted"):
            dist.all_reduce(torch.ones(3))
    run_ranks(2, body)


def test_a_receive_that_never_ends_does_not_abort_the_collectives():
    def body(rank):
        x = torch.ones(3)
        dist.all_reduce(x)
        if rank == 0:
            dist.irecv(torch.ones(3), 1, tag=9)
            dist.barrier()
            works = [dist.all_reduce(x, async_op=True) for _ in range(3)]
            backend().shutdown()
            tell("left")
            for work in works:
                work.wait()
        else:
            dist.barrier()
            for _ in range(3):
                dist.all_reduce(x)
            wait_for("left")
            with pytest.raises(dist.DistBackendError, match="has left the communicator") as caught:
                dist.all_reduce(x)
            assert "aborted" not in str(caught.value)
    run_ranks(2, body, timeout_s=3)


def test_a_group_that_was_shut_down_has_no_error():
    def body(rank):
        dist.all_reduce(torch.ones(3))
        one = backend()
        dist.destroy_process_group()
        assert one.get_error() == 0
        with pytest.raises(dist.DistBackendError, match="was shut down or aborted"):
            one.barrier(dist.BarrierOptions())
        join(rank, 2, folder)
        one = backend()
        dist.barrier()
        tell(f"barrier {rank}")
        wait_for("barrier 0", "barrier 1")  # an abort may reach a rank that is still in it
        one.abort()
        assert one.get_error() != 0
    with tempfile.TemporaryDirectory() as folder:
        run_ranks(2, body)


def test_a_forked_child_says_that_the_group_is_its_parents():
    def body(rank):
        dist.all_reduce(torch.ones(3))

        def child(_):
            for call in (dist.barrier, lambda: dist.isend(torch.ones(3), 1 - rank)):
                with pytest.raises(dist.DistBackendError, match="created before fork"):
                    call()
        fork_ranks(1, child)
        x = torch.ones(3)
        dist.all_reduce(x)
        assert x.eq(2).all()
    run_ranks(2, body)


def test_all_to_all_of_elements_that_ranks_cannot_share():
    def body(rank):
        with pytest.raises(RuntimeError, match="3 elements does not divide equally across 2 ranks"):
            dist.all_to_all_single(torch.ones(3), torch.ones(3))
        for shape in [(1, 4), (1, 0, 2), (3, 2), (1, 2, 3)]:  # parts of all elements, as with Gloo
            size = torch.Size(shape).numel()
            mine = [torch.arange(float(size)) + 100 * r for r in range(2)]
            out = torch.full(shape, -1.0)
            dist.all_to_all_single(out, mine[rank].reshape(shape))
            assert out.equal(torch.cat([x.reshape(2, -1)[rank] for x in mine]).reshape(shape))
    run_ranks(2, body)


def test_splits_on_one_rank_only():
    """Where all are equal it makes no difference to the result, but ranks cannot know that of each other."""
    def body(rank):
        splits = ([2, 2], [2, 2]) if rank == 0 else ()
        with pytest.raises(dist.DistBackendError, match="splits .* all ranks or on none"):
            dist.all_to_all_single(torch.ones(4), torch.ones(4), *splits)
    run_ranks(2, body)


def test_options():
    def body(rank, folder):
        join(rank, 2, folder, pg_options=anyccl.torch.Options())
        assert dist.get_backend() == BACKEND and type(backend()) is anyccl.torch.ProcessGroupAnyccl
        assert backend().options._timeout == datetime.timedelta(seconds=30)
        with pytest.raises(TypeError, match="must be anyccl.torch.Options, not builtins.int"):
            dist.new_group([0, 1], pg_options=3)
        dist.destroy_process_group()
    with tempfile.TemporaryDirectory() as folder:
        fork_ranks(2, body, folder)


class TestMonitoredBarrier:
    @staticmethod
    def wait(seconds, wait_all_ranks=False):
        dist.group.WORLD.monitored_barrier(datetime.timedelta(seconds=seconds), wait_all_ranks)

    def test_it_is_a_barrier(self):
        def body(rank):
            for number in range(5):
                time.sleep(0.02 * rank)
                self.wait(20, bool(number % 2))
        run_ranks(3, body)

    def test_the_first_missing_rank_is_named(self):
        def body(rank):
            if rank == 0:
                with pytest.raises(RuntimeError, match="Rank 1 failed to pass monitoredBarrier in 300 ms"):
                    self.wait(0.3)
            elif rank == 3:
                with pytest.raises(RuntimeError, match="Rank 3 successfully reached monitoredBarrier, but received "
                                                       "errors while waiting for send/recv from rank 0"):
                    self.wait(0.3)
            dist.barrier()
        run_ranks(4, body)

    def test_all_missing_ranks_are_named(self):
        def body(rank):
            if rank == 0:
                with pytest.raises(RuntimeError, match="Ranks 1, 2 failed to pass monitoredBarrier"):
                    self.wait(0.2, True)
            dist.barrier()
        run_ranks(3, body)

    def test_rank_0_has_no_time(self):
        def body(rank):
            if rank == 0:
                with pytest.raises(RuntimeError, match="Rank 0 timed out in monitoredBarrier after 0 ms"):
                    self.wait(0)
            dist.barrier()
        run_ranks(2, body)


def test_a_sparse_sum_against_a_dense_one_names_both():
    def body(rank):
        with pytest.raises(dist.DistError) as caught:
            dist.all_reduce(torch.eye(3).to_sparse() if rank == 1 else torch.eye(3))
        text = str(caught.value)
        assert "rank 0" in text and "rank 1" in text and "all_reduce of 9 f32" in text and "Timed out" not in text, text
    run_ranks(2, body)
