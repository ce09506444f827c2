"""One-sided operations: windows, puts and signals."""

import gc
import sys

import numpy as np
import pytest

import anyccl


def test_a_put_is_there_for_who_has_waited_for_its_signal(two):
    def run(c):
        with c.window(np.zeros(4)) as window:
            window.put(np.array([1.0, 2.0]) + c.rank, 1 - c.rank, offset=1, signal=3)
            c.wait_signal(1 - c.rank, signal=3)
            assert repr(window) == "<anyccl.Window>"
            return window.array.tolist()

    assert two.each(run) == [[0, 2, 3, 0], [0, 1, 2, 0]]


def test_parts_of_a_window_may_differ(two):
    def run(c):
        array = np.zeros(3, np.int16) if c.rank == 0 else np.zeros((2, 2), np.float32)
        window = c.window(array)
        if c.rank == 0:
            window.put(np.full(2, 7, np.float32), 1, 2)
        else:
            c.wait_signal(0)
        window.close()
        window.close()
        assert repr(window) == "<anyccl.Window, closed>"
        return array.tolist()

    assert two.each(run) == [[0, 0, 0], [[0, 0], [7, 7]]]


def test_signals_are_counted_and_used_up(two):
    def run(c):
        for _ in range(3):
            c.signal(1 - c.rank, signal=1, context=2)
        c.wait_signal(1 - c.rank, 2, signal=1, context=2)
        c.wait_signal(1 - c.rank, signal=1, context=2)

    two.each(run)


def test_puts_and_waits_go_into_groups_and_streams(two):
    def run(c):
        window, stream = c.window(np.zeros(2)), anyccl.Stream()
        with anyccl.group():
            window.put(np.array([c.rank + 1.0]), 1 - c.rank)
            c.wait_signal(1 - c.rank)
        window.put(np.array([c.rank + 5.0]), 1 - c.rank, 1, stream=stream)
        c.wait_signal(1 - c.rank, stream=stream)
        stream.synchronize()
        window.close()
        return window.array.tolist()

    assert two.each(run) == [[2, 6], [1, 5]]


def test_a_rank_puts_to_itself(alone):
    window = alone.window(np.zeros(2, np.int32))
    window.put(np.array([4], np.int32), 0, 1)
    alone.wait_signal(0)
    assert window.array.tolist() == [0, 4]


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda w: w.put(np.ones(3), 0), "16"),
        (lambda w: w.put(np.ones(1), 0, 2), "16"),
        (lambda w: w.put(np.ones(1), 0, -1), "offset is -1"),
        (lambda w: w.put(np.ones(1), 1), "1"),
        (lambda w: w.put(np.ones(1), 0, signal=256), "256"),
        (lambda w: w.put(np.ones(1), 0, context=-1), "-1"),
    ],
)
def test_bad_puts_say_what_is_wrong(alone, call, words):
    with alone.window(np.zeros(2)) as window:
        with pytest.raises(anyccl.InvalidArgument, match=words):
            call(window)


def test_a_closed_window_is_refused(alone):
    window = alone.window(np.zeros(2))
    window.close()
    with pytest.raises(anyccl.InvalidUsage, match="closed"):
        window.put(np.ones(1), 0)


def test_a_window_needs_an_array_to_write(alone):
    frozen = np.zeros(2)
    frozen.flags.writeable = False
    with pytest.raises(anyccl.InvalidArgument, match="array"):
        alone.window(frozen)


def test_a_peer_may_put_into_a_window_that_was_dropped(two):
    def run(c):
        window = c.window(np.zeros(1 << 16))
        window.put(np.ones(1 << 16), 1 - c.rank)
        del window
        gc.collect()
        c.wait_signal(1 - c.rank)

    two.each(run)


def test_a_communicator_keeps_the_array_of_a_dropped_window(alone):
    array = np.zeros(1 << 16)
    kept = sys.getrefcount(array)
    alone.window(array)
    gc.collect()
    assert sys.getrefcount(array) > kept
    alone.destroy()
    assert sys.getrefcount(array) == kept


def test_offsets_whose_bytes_wrap_are_refused(two):
    def run(c):
        base = np.zeros(16)
        with c.window(base) as window:
            for offset in (2**61, 2**62, 2**63 - 1):
                with pytest.raises(anyccl.InvalidArgument, match="offset"):
                    window.put(np.full(4, 7.0), 1 - c.rank, offset)
        return base.any()

    assert two.each(run) == [False, False]
