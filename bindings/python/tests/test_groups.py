"""Groups: calls that start together."""

import gc
import threading
import weakref

import numpy as np
import pytest

import anyccl
import anyccl.codec


def test_messages_of_a_group_do_not_wait_for_each_other(two):
    def run(c):
        x, out = np.full(100000, c.rank), np.zeros(100000, np.int64)
        with anyccl.group():
            c.send(x, 1 - c.rank)
            assert c.recv(out, 1 - c.rank) is out
        return out.max()

    assert two.each(run) == [1, 0]


def test_one_thread_calls_for_several_ranks(two):
    with anyccl.group():
        results = [c.all_gather(np.array([c.rank])) for c in two.comms]
    assert [r.tolist() for r in results] == [[[0], [1]]] * 2


def test_small_collectives_are_filled_after_the_block(two):
    def run(c):
        with anyccl.group():
            sums = [c.all_reduce(np.array([i + c.rank])) for i in range(50)]
        return [int(s[0]) for s in sums]

    assert two.each(run) == [[2 * i + 1 for i in range(50)]] * 2


def test_communicators_may_be_called_in_another_order_on_each_rank(two):
    others = two.each(lambda c: c.split(0))

    def run(c):
        x, y = np.array([1]), np.array([10])
        calls = [lambda: c.all_reduce(x, out=x), lambda: others[c.rank].all_reduce(y, out=y)]
        with anyccl.group():
            for call in calls if c.rank == 0 else reversed(calls):
                call()
        return [int(x[0]), int(y[0])]

    assert two.each(run) == [[2, 20]] * 2


def test_v_forms_keep_their_counts_until_the_block_ends(two):
    def run(c):
        with anyccl.group():
            everything = c.all_gather_v(np.full(c.rank + 1, c.rank), [1, 2])
            gc.collect()
        return everything.tolist()

    assert two.each(run) == [[0, 1, 1]] * 2


def test_nothing_starts_before_the_outermost_block_ends(two):
    x = [np.ones(1), np.ones(1)]
    with anyccl.group():
        with anyccl.group():
            two.comms[0].all_reduce(x[0], out=x[0])
        two.comms[1].all_reduce(x[1], out=x[1])
        assert [y[0] for y in x] == [1, 1]
    assert [y[0] for y in x] == [2, 2]


def test_a_block_that_raises_starts_nothing(two):
    def run(c):
        x = np.ones(1)
        with pytest.raises(KeyError), anyccl.group():
            work = c.all_reduce(x, out=x, async_op=True)
            raise KeyError
        with pytest.raises(anyccl.InvalidUsage, match="left by an exception"):
            work.wait()
        return x[0], c.all_reduce(np.ones(1))[0]

    assert two.each(run) == [(1, 2)] * 2


def test_a_work_of_a_group_waits_for_the_end_of_the_block(two):
    def run(c):
        with anyccl.group():
            work = c.all_reduce(np.ones(2), async_op=True)
            assert not work.test() and not work.done
            with pytest.raises(anyccl.InvalidUsage, match="group of this operation is still open"):
                work.wait()
        assert work.done
        return work.wait().tolist()

    assert two.each(run) == [[2, 2]] * 2


def test_works_of_receives_know_their_source(two):
    def run(c):
        out = np.zeros(1)
        with anyccl.group():
            c.send(np.ones(1), 1 - c.rank)
            work = c.recv(out, async_op=True)
        return work.source

    assert two.each(run) == [1, 0]


def test_calls_with_streams_start_together_when_their_stream_comes_to_them(two):
    def run(c):
        go, stream = threading.Event(), anyccl.Stream()
        stream.run(go.wait)
        out = np.zeros(100000)
        with anyccl.group():
            c.send(np.full(100000, 1.0 + c.rank), 1 - c.rank, stream=stream)
            work = c.recv(out, 1 - c.rank, stream=stream, async_op=True)
        assert not work.done and out.max() == 0
        go.set()
        assert work.wait() is out
        stream.synchronize()
        return out.min()

    assert two.each(run) == [2, 1]


def test_calls_with_and_without_streams_may_be_mixed(two):
    def run(c):
        stream, x, y = anyccl.Stream(), np.ones(1), np.ones(1)
        with anyccl.group():
            c.all_reduce(x, out=x, stream=stream)
            c.all_reduce(y, out=y)
        assert y[0] == 2
        stream.synchronize()
        return x[0]

    assert two.each(run) == [2, 2]


def test_arrays_live_until_operations_in_streams_are_done(two):
    go = threading.Event()

    def run(c):
        stream, x = anyccl.Stream(), np.full(100000, 3.0)
        stream.run(go.wait)
        alive = weakref.ref(x)
        with anyccl.group():
            c.all_reduce(x, out=x, stream=stream)
        del x
        gc.collect()
        before = alive() is not None
        go.set()
        stream.synchronize()
        return before, alive() is None

    assert two.each(run) == [(True, True)] * 2


def test_an_error_of_a_call_is_raised_at_the_end_of_the_block(two):
    def run(c):
        with pytest.raises(anyccl.InvalidUsage, match="rank"), anyccl.group():
            c.all_reduce(np.ones(2 + c.rank))

    two.each(run)


def test_what_has_its_result_at_once_is_refused(alone):
    x = np.array([0])
    coded = anyccl.codec.AllReduce(alone, "int8")
    for call in (
        lambda: alone.split(0),
        lambda: anyccl.sequence(alone).__enter__(),
        lambda: coded.run(np.ones(4, np.float32)),
        lambda: alone.broadcast_object(1),
        lambda: alone.route(x, 1),
        lambda: anyccl.Communicator.init_all(1),
    ):
        with pytest.raises(anyccl.InvalidUsage, match="cannot be in a group"), anyccl.group():
            call()


def test_a_group_that_another_thread_has_opened_cannot_be_left(in_thread):
    group = anyccl.group()
    group.__enter__()
    refused = []

    def leave():
        try:
            group.__exit__(None, None, None)
        except anyccl.InvalidUsage as e:
            refused.append(str(e))

    thread = threading.Thread(target=leave)
    thread.start()
    thread.join()
    assert "another thread" in refused[0]
    group.__exit__(None, None, None)


def test_an_open_group_is_not_opened_again():
    group = anyccl.group()
    with group:
        with pytest.raises(anyccl.InvalidUsage, match="open already"):
            group.__enter__()
    with group:
        pass


def test_a_group_may_be_used_again_after_an_error(alone):
    group = anyccl.group()
    with pytest.raises(anyccl.InvalidUsage, match="destroyed"), group:
        alone.barrier()
        alone.destroy()
    with group:
        pass


def test_a_communicator_that_ended_in_the_block_is_an_error(alone):
    with pytest.raises(anyccl.InvalidUsage, match="destroyed"), anyccl.group():
        alone.barrier()
        alone.destroy()
