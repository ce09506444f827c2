"""Operations that were issued and may not be complete."""

import gc
import os
import signal
import threading
import weakref

import numpy as np
import pytest

import anyccl


def test_wait_returns_the_result_every_time(two):
    def run(c):
        work = c.all_reduce(np.ones(3), async_op=True)
        result = work.wait()
        assert work.wait() is result
        return result.tolist()

    assert two.each(run) == [[2, 2, 2]] * 2


def test_wait_returns_the_output_that_was_given(two):
    def run(c):
        x = np.ones(3)
        return c.all_reduce(x, out=x, async_op=True).wait() is x

    assert two.each(run) == [True, True]


def test_a_work_is_not_done_before_the_peer_has_called(two):
    out = np.zeros(1)
    work = two.comms[0].recv(out, 1, async_op=True)
    assert not work.test() and not work.done
    two.each(lambda c: work.wait() if c.rank == 0 else c.send(np.ones(1), 0))
    assert work.test() and work.done
    assert out[0] == 1


def test_a_block_waits_at_its_end(two):
    def run(c):
        x = np.ones(3)
        with c.all_reduce(x, out=x, async_op=True):
            pass
        return x.tolist()

    assert two.each(run) == [[2, 2, 2]] * 2


def test_a_work_keeps_its_input_alive(two):
    x = np.full(100000, 7.0)
    alive = weakref.ref(x)
    work = two.comms[0].send(x, 1, async_op=True)
    del x
    gc.collect()
    assert alive() is not None
    out = np.zeros(100000)
    two.each(lambda c: work.wait() if c.rank == 0 else c.recv(out, 0))
    assert out.min() == 7
    assert alive() is None


def test_a_dropped_work_keeps_its_arrays_alive_until_it_is_complete(two):
    x = np.full(100000, 7.0)
    alive = weakref.ref(x)
    two.comms[0].send(x, 1, async_op=True)
    del x
    gc.collect()
    assert alive() is not None
    out = np.zeros(100000)

    def run(c):
        if c.rank == 1:
            c.recv(out, 0)
        c.barrier()
        c.barrier()

    two.each(run)
    assert out.min() == 7
    assert alive() is None


def test_a_dropped_work_is_completed_by_the_next_call(two):
    def run(c):
        x = np.full(4, float(c.rank))
        alive = weakref.ref(x)
        c.all_reduce(x, out=x, async_op=True)
        del x
        c.barrier()
        c.barrier()
        return alive() is None

    assert two.each(run) == [True, True]


def test_a_dropped_work_is_completed_by_destroy(two):
    x = np.ones(4)

    def run(c):
        y = x if c.rank == 0 else np.ones(4)
        c.all_reduce(y, out=y, async_op=True)
        del y
        c.destroy()

    two.each(run)
    assert x.tolist() == [2] * 4


def test_a_work_outlives_its_communicator(two):
    works = two.each(lambda c: c.all_reduce(np.ones(2), async_op=True))
    two.each(lambda c: c.destroy())
    assert [work.wait().tolist() for work in works] == [[2, 2], [2, 2]]


def test_a_work_that_is_dropped_after_destroy_frees_its_arrays(two):
    xs = [np.ones(2), np.ones(2)]
    alive = weakref.ref(xs[0])
    works = two.each(lambda c: c.all_reduce(xs[c.rank], out=xs[c.rank], async_op=True))
    two.each(lambda c: c.destroy())
    del xs, works
    assert alive() is None


def test_an_error_comes_with_every_wait(two):
    def run(c):
        work = c.all_reduce(np.ones(2 + c.rank), async_op=True)
        for _ in range(2):
            with pytest.raises(anyccl.InvalidUsage, match="rank"):
                work.wait()
        assert work.done
        with pytest.raises(anyccl.InvalidUsage):
            work.test()

    two.each(run)


def test_any_thread_may_wait(two):
    results = []
    works = two.each(lambda c: c.all_reduce(np.ones(2), async_op=True))
    threads = [threading.Thread(target=lambda w=w: results.append(w.wait().tolist())) for w in works * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [[2, 2]] * 6


def test_a_work_says_what_state_it_is_in(two):
    work = two.comms[0].barrier(async_op=True)
    assert repr(work) == "<anyccl.Work, under way>"
    two.each(lambda c: work.wait() if c.rank == 0 else c.barrier())
    assert repr(work) == "<anyccl.Work, done>"


@pytest.mark.parametrize("async_op", [False, True])
def test_a_signal_ends_a_wait_and_the_operation_goes_on(two, async_op):
    """As Ctrl-C does."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    x, y = np.ones(3), np.full(3, 2.0)
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        mine = two.comms[0].all_reduce(x, out=x, async_op=async_op)
        mine.wait()
    signal.signal(signal.SIGINT, before)
    two.each(lambda c: c.rank == 1 and c.all_reduce(y))
    assert two.each(lambda c: c.all_reduce(np.ones(1)).tolist()) == [[2], [2]]
    assert x.tolist() == [3, 3, 3]


def test_a_time_limit_names_who_is_missing(two):
    first = two.comms[0]
    assert first.timeout is None
    first.timeout = 0.2
    assert first.timeout == pytest.approx(0.2)
    with pytest.raises(anyccl.Timeout, match="rank 1"):
        first.all_reduce(np.ones(2))
    assert isinstance(first.failure, anyccl.Timeout)


def test_a_call_has_a_time_limit_of_its_own(two):
    first = two.comms[0]
    first.timeout = 1000
    with pytest.raises(anyccl.Timeout, match="rank 1"):
        first.all_reduce(np.ones(2), timeout=0.1)


def test_a_call_may_take_for_ever_where_others_may_not(two):
    first = two.comms[0]
    first.timeout = 0.1
    work = first.all_reduce(np.ones(2), timeout=float("inf"), async_op=True)
    with pytest.raises(anyccl.InProgress):
        work.wait(timeout=0.3)
    assert two.each(lambda c: work.wait() if c.rank == 0 else c.all_reduce(np.ones(2)))[0].tolist() == [2, 2]


@pytest.mark.parametrize("seconds", [0, -1, 1e9, float("nan")])
def test_a_time_limit_is_checked(alone, seconds):
    with pytest.raises(anyccl.InvalidArgument, match="timeout is"):
        alone.timeout = seconds
    with pytest.raises(anyccl.InvalidArgument, match="timeout is"):
        alone.barrier(timeout=seconds)
    alone.timeout = float("inf")
    assert alone.timeout == float("inf")
    alone.timeout = None
    assert alone.timeout is None


@pytest.mark.parametrize("seconds", [0, 0.01])
def test_a_wait_with_a_time_ends_and_the_operation_goes_on(two, seconds):
    work = two.comms[0].all_reduce(np.ones(2), async_op=True)
    with pytest.raises(anyccl.InProgress, match="not complete after .*; it goes on: rank 0 .* waits for rank 1") as caught:
        work.wait(timeout=seconds)
    assert isinstance(caught.value, TimeoutError) and two.comms[0].failure is None
    assert two.each(lambda c: work.wait(60) if c.rank == 0 else c.all_reduce(np.ones(2)))[0].tolist() == [2, 2]


@pytest.mark.parametrize("seconds", [-1, float("nan")])
def test_the_time_of_a_wait_is_checked(alone, seconds):
    with pytest.raises(anyccl.InvalidArgument, match="timeout is"):
        alone.barrier(async_op=True).wait(seconds)


def test_a_limit_makes_a_started_operation_fail(two):
    work = two.comms[0].all_reduce(np.ones(2), async_op=True)
    work.limit(0.1)
    with pytest.raises(anyccl.Timeout, match="rank 1"):
        work.wait()
    with pytest.raises(anyccl.InvalidArgument, match="timeout is"):
        work.limit(-1)


def test_only_a_receive_has_a_source(two):
    with pytest.raises(anyccl.InvalidUsage):
        print(two.each(lambda c: c.barrier(async_op=True))[0].source)
