"""Streams and events: order, errors, and arrays that live until their operation is done."""

import gc
import threading
import weakref

import numpy as np
import pytest

import anyccl


def test_work_is_done_in_order_and_later_work_sees_the_result(two):
    def run(c):
        x, seen = np.full(3, c.rank + 1.0), []
        with anyccl.Stream() as stream:
            stream.run(lambda: np.add(x, 1, out=x))
            assert c.all_reduce(x, out=x, stream=stream) is x
            stream.run(lambda: seen.append(x.tolist()))
        return seen

    assert two.each(run) == [[[5, 5, 5]]] * 2


def test_a_new_result_is_filled_when_the_stream_has_come_there(two):
    def run(c):
        stream = anyccl.Stream()
        total = c.all_gather(np.array([c.rank]), stream=stream)
        stream.synchronize()
        return total.tolist()

    assert two.each(run) == [[[0], [1]]] * 2


def test_a_call_with_a_stream_returns_before_its_operation_is_done(two):
    go, stream = threading.Event(), anyccl.Stream()
    stream.run(go.wait)
    work = two.comms[0].all_reduce(np.ones(2), stream=stream, async_op=True)
    assert not work.test() and not stream.query() and not stream.done
    assert repr(stream) == "<anyccl.Stream, under way>"
    go.set()
    assert two.each(lambda c: work.wait() if c.rank == 0 else c.all_reduce(np.ones(2)))[0].tolist() == [2, 2]
    stream.synchronize()
    assert stream.query() and stream.done and repr(stream) == "<anyccl.Stream, done>"


def test_a_stream_that_was_waited_for_is_done():
    """The stream's thread may be interrupted at any place after it has told of its end."""
    stream = anyccl.Stream()
    for _ in range(500):
        stream.run(int)
        stream.synchronize()
        assert stream.query()


@pytest.mark.parametrize("drop_stream", [False, True])
def test_arrays_live_until_the_operation_is_done(two, drop_stream):
    go, stream = threading.Event(), anyccl.Stream()
    stream.run(go.wait)
    x = np.full(100000, 7.0)
    alive = weakref.ref(x)
    two.comms[0].send(x, 1, stream=stream)
    after = anyccl.Event()
    after.record(stream)
    if drop_stream:
        stream = None
    del x
    gc.collect()
    assert alive() is not None
    go.set()
    out = np.zeros(100000)
    two.comms[1].recv(out, 0)
    assert out.min() == 7
    after.synchronize()
    two.each(lambda c: c.barrier())
    assert alive() is None


def test_synchronize_lets_go_of_arrays(two):
    def run(c):
        stream, x = anyccl.Stream(), np.ones(1000)
        alive = weakref.ref(x)
        c.all_reduce(x, out=x, stream=stream)
        del x
        stream.synchronize()
        return alive() is None

    assert two.each(run) == [True, True]


def test_an_exception_of_a_function_comes_at_synchronize_and_does_not_end_the_stream(alone):
    stream, ran = anyccl.Stream(), []
    stream.run(lambda: {}["missing"])
    stream.run(lambda: ran.append(1))
    for _ in range(2):
        with pytest.raises(KeyError, match="missing"):
            stream.synchronize()
    with pytest.raises(KeyError):
        stream.query()
    assert ran == [1] and stream.done
    x = alone.all_reduce(np.ones(1), stream=stream)
    with pytest.raises(KeyError):
        stream.synchronize()
    assert x.tolist() == [1]


def test_an_error_comes_with_the_events_and_streams_behind_it():
    first, second, event = anyccl.Stream(), anyccl.Stream(), anyccl.Event()
    first.run(lambda: 1 / 0)
    event.record(first)
    second.wait_event(event)
    with pytest.raises(ZeroDivisionError):
        event.synchronize()
    with pytest.raises(anyccl.InvalidUsage, match="ZeroDivisionError: division by zero"):
        second.synchronize()


def test_a_failed_operation_is_an_error_of_the_stream(two):
    def run(c):
        stream = anyccl.Stream()
        c.all_reduce(np.ones(2 + c.rank), stream=stream)
        with pytest.raises(anyccl.InvalidUsage, match="rank"):
            stream.synchronize()
        assert isinstance(c.failure, anyccl.InvalidUsage)

    two.each(run)


def test_a_wrong_argument_is_an_error_of_the_call_and_puts_nothing_into_the_stream(alone):
    stream = anyccl.Stream()
    with pytest.raises(anyccl.InvalidArgument, match="root"):
        alone.broadcast(np.ones(1), 5, out=np.ones(1), stream=stream)
    stream.synchronize()


def test_a_stream_waits_for_an_event_of_another_one():
    go, order = threading.Event(), []
    first, second, event = anyccl.Stream(), anyccl.Stream(), anyccl.Event()
    first.run(lambda: (go.wait(), order.append("first")))
    event.record(first)
    assert not event.query() and not event.done and repr(event) == "<anyccl.Event, not complete>"
    second.wait_event(event)
    second.run(lambda: order.append("second"))
    go.set()
    second.synchronize()
    assert order == ["first", "second"] and event.query() and event.done


def test_an_event_that_was_never_recorded_is_complete():
    event, stream = anyccl.Event(), anyccl.Stream()
    event.synchronize()
    stream.wait_event(event)
    stream.synchronize()
    assert event.query() and repr(event) == "<anyccl.Event, complete>"
    with pytest.raises(anyccl.InvalidUsage, match="never recorded"):
        event.elapsed_time(event)


def test_the_time_between_events_is_in_milliseconds():
    stream, start, end, passed = anyccl.Stream(), anyccl.Event(), anyccl.Event(), threading.Event()
    start.record(stream)
    stream.run(lambda: passed.wait(0.05))
    end.record(stream)
    with pytest.raises(anyccl.InProgress):
        start.elapsed_time(end)
    end.synchronize()
    assert 50 <= start.elapsed_time(end) < 20000


def test_waits_with_a_time_end_and_the_stream_goes_on():
    go, stream, event = threading.Event(), anyccl.Stream(), anyccl.Event()
    stream.run(go.wait)
    event.record(stream)
    with pytest.raises(anyccl.InProgress, match="stream is not done"):
        stream.synchronize(timeout=0.01)
    with pytest.raises(anyccl.InProgress, match="event is not complete"):
        event.synchronize(timeout=0)
    go.set()
    stream.synchronize()
    event.synchronize()


def test_a_function_cannot_wait_for_its_own_stream():
    stream = anyccl.Stream()
    stream.run(stream.synchronize)
    with pytest.raises(anyccl.InvalidUsage, match="cannot wait for its own stream"):
        stream.synchronize()


def test_a_block_that_raises_does_not_wait():
    go = threading.Event()
    with pytest.raises(KeyError), anyccl.Stream() as stream:
        stream.run(go.wait)
        raise KeyError
    go.set()
    stream.synchronize()


def test_a_dropped_stream_still_does_its_work():
    done = threading.Event()
    anyccl.Stream().run(done.set)
    assert done.wait(60)


def test_functions_and_what_they_hold_are_freed_when_they_have_run():
    class Held:
        pass

    stream, held = anyccl.Stream(), Held()
    alive = weakref.ref(held)
    stream.run(lambda held=held: None)
    del held
    stream.synchronize()
    assert alive() is None


def test_streams_do_not_block_the_interpreter(two):
    """Functions of streams need the lock that the main thread would hold in a wait."""

    def run(c):
        x = np.zeros(1)
        with anyccl.Stream() as stream:
            for _ in range(20):
                stream.run(lambda: np.add(x, 1, out=x))
                c.all_reduce(x, out=x, stream=stream)
        return x[0]

    expected = 0
    for _ in range(20):
        expected = (expected + 1) * 2
    assert two.each(run) == [expected] * 2


def test_results_of_a_library_whose_arrays_are_not_written_need_a_work(alone):
    from tensor import BFLOAT, Imported, LibraryTensor

    stream, x = anyccl.Stream(), LibraryTensor(np.ones(2, np.uint16), BFLOAT)
    with pytest.raises(anyccl.InvalidUsage, match="out= or async_op=True"):
        alone.all_reduce(x, stream=stream)
    assert type(alone.all_reduce(x, stream=stream, async_op=True).wait()) is Imported


def test_a_barrier_in_a_stream_gives_none(two):
    def run(c):
        with anyccl.Stream() as stream:
            return c.barrier(stream=stream)

    assert two.each(run) == [None, None]
