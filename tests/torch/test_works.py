"""What asynchronous calls give: works, futures, coalesced works; and what happens to those nobody waits for."""

import datetime
import gc
import os
import signal
import threading
import time
import weakref

import pytest
import torch
import torch.distributed as dist
from ranks import run_ranks, tell, wait_for


def until(condition, what, deadline_s=20):
    end = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.001)


def test_a_work_completes_without_being_waited_for():
    def body(rank):
        x = torch.ones(1000)
        work = dist.all_reduce(x, async_op=True)
        until(work.is_completed, "the work is never complete")
        assert work.is_success() and x.eq(2).all() and work.result()[0] is x
        work.wait()
        work.wait()
        dist.barrier()
    run_ranks(2, body)


def test_dropped_works_keep_their_tensors():
    def body(rank):
        whole = torch.zeros(50, 2, 1000)
        for i in range(50):
            x = whole[i].t()  # a copy goes back when it is complete
            x.fill_(rank + 1)
            dist.all_reduce(x, async_op=True)
            dist.all_reduce(torch.ones(1 << 16), async_op=True)
            del x
        gc.collect()
        until(lambda: whole.eq(3).all(), "a dropped work is never complete")
        dist.barrier()
    run_ranks(2, body)


def test_waiting_in_another_thread():
    def body(rank):
        x = torch.ones(10)
        work = dist.all_reduce(x, async_op=True)
        threads = [threading.Thread(target=work.wait) for _ in range(4)]
        for thread in threads:
            thread.start()
        work.wait()
        for thread in threads:
            thread.join()
        assert x.eq(2).all()
    run_ranks(2, body)


def test_futures():
    def body(rank):
        x = torch.ones(10)
        future = dist.all_reduce(x, async_op=True).get_future()  # the work is dropped
        assert future.wait()[0] is x and x.eq(2).all()
        y = torch.ones(10)
        work = dist.all_reduce(y, async_op=True)
        work.wait()
        assert work.get_future().value()[0] is y
        doubled = dist.all_reduce(torch.ones(3), async_op=True).get_future().then(lambda f: f.value()[0] * 2)
        assert doubled.wait().eq(4).all()
        outs = [torch.zeros(2) for _ in range(2)]
        gathered = dist.all_gather(outs, torch.full((2,), float(rank)), async_op=True).get_future().wait()
        assert [int(t[0]) for t in gathered] == [0, 1]
        z, options = torch.ones(10), dist.AllreduceOptions()
        options.asyncOp = False
        blocking = dist.group.WORLD.allreduce([z], options)
        assert blocking.get_future().value()[0] is z and blocking.result()[0] is z and z.eq(2).all()
    run_ranks(2, body)


def test_a_callback_may_wait_for_an_operation():
    """As PowerSGD's hook does."""
    def body(rank):
        def again(future):
            x = future.value()[0]
            return dist.all_reduce(x, async_op=True).get_future().wait()[0]
        for _ in range(20):
            future = dist.all_reduce(torch.ones(3), async_op=True).get_future().then(again)
            assert future.wait().eq(4).all()
    run_ranks(2, body)


def test_another_thread_may_issue_while_one_waits():
    def body(rank):
        if rank == 0:
            thread = threading.Thread(target=dist.barrier)
            thread.start()
            backend = dist.group.WORLD._get_backend(torch.device("cpu"))
            until(lambda: backend._get_sequence_number_for_group() > 0, "the thread does not come to its barrier")
            work = dist.barrier(async_op=True)  # rank 1 comes to neither before this has returned
            assert backend.get_error() == 0
            tell("issued")
            work.wait()
            thread.join()
        else:
            wait_for("issued")
            dist.barrier()
            dist.barrier()
        # Large, with several threads in their own synchronous calls.
        def sums(group, xs):
            for x in xs:
                dist.all_reduce(x, group=group)
        xs = [torch.ones(100000) for _ in range(20)]
        threads = [threading.Thread(target=sums, args=(None, xs[i::2])) for i in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(x.eq(2).all() for x in xs)
    run_ranks(2, body)


def test_a_failed_operation_fails_its_future():
    def body(rank):
        if rank == 0:
            future = dist.all_reduce(torch.ones(3), async_op=True).get_future()
            with pytest.raises(RuntimeError, match="anyccl: .*rank 1"):
                future.wait()
        else:
            with pytest.raises(dist.DistBackendError):
                dist.all_reduce(torch.ones(3), op=dist.ReduceOp.MAX)
    run_ranks(2, body)


def test_a_wait_that_is_too_short():
    def body(rank):
        x = torch.ones(3)
        if rank == 1:
            wait_for("rank 0 has waited")
        work = dist.all_reduce(x, async_op=True)
        if rank == 0:
            with pytest.raises(dist.DistBackendError, 
                               match="Timed out waiting 50 ms for ALLREDUCE; it goes on: rank 0 .* waits for rank 1 in"):
                work.wait(datetime.timedelta(milliseconds=50))
            received = dist.irecv(torch.ones(2), 1)
            with pytest.raises(dist.DistBackendError, match="RECV; it goes on: rank 0 .* waits for rank 1 .* in a receive"):
                received.wait(datetime.timedelta(milliseconds=50))
            tell("rank 0 has waited")
        work.wait()  # it went on
        assert x.eq(2).all()
        sparse = torch.eye(3).to_sparse()
        if rank == 1:
            wait_for("rank 0 has waited for a sparse sum")
        work = dist.all_reduce(sparse, async_op=True)
        if rank == 0:
            with pytest.raises(dist.DistBackendError, match="SPARSE; it goes on: rank 0 .* waits for rank 1 in"):
                work.wait(datetime.timedelta(milliseconds=50))
            tell("rank 0 has waited for a sparse sum")
        work.wait()
        assert sparse.to_dense().equal(2 * torch.eye(3))
        if rank == 0:
            received.wait()
        else:
            dist.send(torch.ones(2), 0)
    run_ranks(2, body)


@pytest.mark.parametrize("async_ops", [False, True])
def test_the_coalescing_manager(async_ops):
    def body(rank):
        for device in (None, torch.device("cpu")):
            xs = [torch.full((n,), 1.0) for n in (1, 100, 10000)]
            with dist._coalescing_manager(device=device, async_ops=async_ops) as manager:
                for x in xs:
                    dist.all_reduce(x)
            outs = [torch.zeros(2 * n) for n in (1, 100)]
            with dist._coalescing_manager(device=device, async_ops=async_ops) as second:
                for out in outs:
                    dist.all_gather_single(out, torch.full((out.numel() // 2,), float(rank)))
            parts = [torch.zeros(n) for n in (1, 100)]
            with dist._coalescing_manager(device=device, async_ops=async_ops) as third:
                for part in parts:
                    dist.reduce_scatter_single(part, torch.ones(2 * part.numel()))
            if async_ops:
                for one in (third, second, manager):
                    one.wait()
            assert all(x.eq(2).all() for x in xs + parts)
            assert all(out[0] == 0 and out[-1] == 1 for out in outs)
        with dist._coalescing_manager(device=torch.device("cpu"), async_ops=True) as mixed:
            x, y = torch.full((3,), float(rank)), torch.zeros(2, 3)
            dist.broadcast(x, 1)
            dist.barrier()
        mixed.wait()
        assert x.eq(1).all()
    run_ranks(2, body)


def test_an_exception_while_coalescing():
    def body(rank):
        with pytest.raises(ZeroDivisionError):
            with dist._coalescing_manager(device=torch.device("cpu"), async_ops=True):
                dist.broadcast(torch.ones(1), 0)
                raise ZeroDivisionError
        dist.distributed_c10d._world.pg_coalesce_state.clear()
        x = torch.ones(3)
        dist.all_reduce(x)
        assert x.eq(2).all()
        with dist._coalescing_manager(device=torch.device("cpu"), async_ops=True) as manager:
            dist.broadcast(x, 0)
        manager.wait()
    run_ranks(2, body)


def test_synchronous_calls_after_an_exception_while_coalescing():
    """Torch says nothing to the backend: what is called later is not part of what was coalesced."""
    def body(rank):
        with pytest.raises(ZeroDivisionError):
            with dist._coalescing_manager(device=torch.device("cpu"), async_ops=True):
                raise ZeroDivisionError
        dist.distributed_c10d._world.pg_coalesce_state.clear()
        x = torch.ones(3)
        gone = weakref.ref(x)
        dist.broadcast(x, 0)
        del x
        assert gone() is None
        held = []
        for _ in range(5000):
            x = torch.ones(3)
            held.append(weakref.ref(x))
            dist.broadcast(x, 0, async_op=True).wait()
            del x
        while sum(x() is not None for x in held) > 1500:  # it forgets what is done after each thousand
            time.sleep(0.01)
    run_ranks(2, body)


def test_callbacks_that_wait_get_more_threads_but_not_without_end():
    def body(rank):
        count, most = 100, 64
        if rank == 1:
            dist.barrier()
            for _ in range(count):
                dist.send(torch.ones(1), 0)
            return
        proceed, running = threading.Event(), []

        def wait(_):
            running.append(threading.get_ident())
            proceed.wait()

        futures = [dist.irecv(torch.ones(1), 1).get_future().then(wait) for _ in range(count)]
        dist.barrier()
        while len(running) < most:
            time.sleep(0.01)
        time.sleep(0.1)
        assert len(running) == most
        proceed.set()
        torch.futures.wait_all(futures)
        assert len(running) == count and len(set(running)) == most
    run_ranks(2, body)


def test_many_works_at_once():
    def body(rank):
        xs = [torch.full((i % 7 + 1,), float(i)) for i in range(500)]
        works = [dist.all_reduce(x, async_op=True) for x in xs]
        for work in reversed(works):
            work.wait()
        assert all(x.eq(2 * i).all() for i, x in enumerate(xs))
    run_ranks(2, body)


def test_sequence_numbers_and_durations():
    def body(rank):
        backend = dist.group.WORLD._get_backend(torch.device("cpu"))
        before = backend._get_sequence_number_for_group()
        work = dist.all_reduce(torch.ones(3), async_op=True)
        work.wait()
        with pytest.raises(RuntimeError, match="timing was enabled"):
            work._get_duration()
        dist.group.WORLD._enable_collectives_timing()
        work = dist.all_reduce(torch.ones(3), async_op=True)
        work.wait()
        assert 0 < work._get_duration() < 10000
        dist.barrier()
        assert backend._get_sequence_number_for_group() == before + 3
    run_ranks(2, body)


@pytest.mark.parametrize("is_async", [False, True])
def test_coalesced_calls_read_what_was_there_before(is_async):
    """As with Gloo: tensors of a coalesced call may overlap, and each is the result for what it was before."""
    def finish(work):
        if is_async:
            work.wait()

    def body(rank):
        x = torch.full((6,), rank + 1.0)
        finish(dist.all_reduce_coalesced([x, x], async_op=is_async))
        assert x.equal(torch.full((6,), 3.0))
        x = torch.arange(8.0) + rank
        finish(dist.all_reduce_coalesced([x[:5], x[3:], x.view(2, 4)[:, 1]], async_op=is_async))
        assert x.equal(2 * torch.arange(8.0) + 1)

        x = torch.arange(8.0) + 10 * rank
        before, gathered = x.clone(), torch.empty(8)
        with dist._coalescing_manager(async_ops=is_async) as manager:
            dist.all_gather_single(x, x[:4].clone())
            dist.all_gather_single(gathered, x[4:])
        if is_async:
            manager.wait()
        of_both = [torch.arange(8.0), torch.arange(8.0) + 10]
        assert of_both[rank].equal(before)
        assert x.equal(torch.cat([one[:4] for one in of_both]))
        assert gathered.equal(torch.cat([one[4:] for one in of_both])), "as it was before the first one"
    run_ranks(2, body)


@pytest.mark.parametrize("what", ["blocking", "work", "work within", "receive", "sparse"])
def test_a_signal_ends_a_wait_and_the_operation_goes_on(what):
    """As Ctrl-C does."""
    def body(rank):
        x, tag = torch.ones(1000), torch.zeros(1)
        if rank == 1:
            wait_for("interrupted")
        else:
            signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            if what == "blocking":
                dist.all_reduce(x)
            elif what == "receive" and rank == 0:
                dist.recv(tag, src=1)
            elif what == "receive":
                dist.send(torch.ones(1), dst=0)
            elif what == "sparse":
                x = x.to_sparse()
                dist.all_reduce(x)
            else:
                within = (datetime.timedelta(seconds=50),) if what == "work within" else ()
                dist.all_reduce(x, async_op=True).wait(*within)
            assert rank == 1, "nothing was raised"
        except KeyboardInterrupt:
            assert rank == 0
            tell("interrupted")
        y = torch.ones(1)
        dist.all_reduce(y)  # in its place behind the other
        assert y.item() == 2
        until(lambda: what == "receive" or x.to_dense().eq(2).all(), "it went on")
        dist.barrier()
        until(lambda: rank == 1 or what != "receive" or tag.item() == 1, "the message is never there")
    run_ranks(2, body)


def test_a_signal_ends_the_end_of_a_group():
    """Where an operation is open that no other rank has called."""
    def body(rank):
        group = dist.new_group()
        if rank == 1:
            wait_for("interrupted")
        else:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            work = dist.all_reduce(torch.ones(1000), group=group, async_op=True)
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
            begin = time.monotonic()
            with pytest.raises(KeyboardInterrupt):
                dist.destroy_process_group(group)
            assert time.monotonic() - begin < 20, "it waited for its limit, 30 s"
            del work
            tell("interrupted")
        dist.barrier()
    run_ranks(2, body)
