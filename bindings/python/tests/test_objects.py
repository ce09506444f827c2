"""Objects of Python between ranks."""

import os
import signal
import sys
import threading
import time

import numpy as np
import pytest

import anyccl

SIZES = [0, 1, 400, 496, 497, 600, 100000]


class Unpicklable:
    def __reduce__(self):
        raise TypeError("not\x1bthis one")


@pytest.mark.parametrize("size", SIZES)
def test_objects_of_any_size_come_to_all(four, size):
    mine = [{"rank": r, "data": bytes([r]) * (size if r % 2 else 3)} for r in range(4)]
    assert four.each(lambda c: c.all_gather_object(mine[c.rank])) == [mine] * 4


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("root", [0, 2])
def test_objects_come_from_and_to_a_root(four, size, root):
    objs = [(r, "x" * (size if r != 1 else 5)) for r in range(4)]
    assert four.each(lambda c: c.broadcast_object(objs[3] if c.rank == root else None, root)) == [objs[3]] * 4
    gathered = four.each(lambda c: c.gather_object(objs[c.rank], root))
    assert gathered == [objs if r == root else None for r in range(4)]
    assert four.each(lambda c: c.scatter_object(objs if c.rank == root else None, root)) == objs


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("named", [True, False])
def test_objects_are_messages(two, size, named):
    def run(c):
        if c.rank == 0:
            c.send_object(["x" * size], 1, tag=3)
            return c.recv_object(1 if named else None, tag=4)
        got = c.recv_object(0 if named else None, tag=3)
        c.send_object(len(got[0]), 0, tag=4)
        return got

    assert two.each(run) == [size, ["x" * size]]


def test_arrays_are_objects(two):
    x = np.arange(1000.0).reshape(10, 100)
    results = two.each(lambda c: c.broadcast_object(x if c.rank == 0 else None))
    assert all(np.array_equal(x, y) for y in results)


def test_an_object_of_more_than_two_gib_in_the_long_form(two):
    data = bytes(range(251)) * (2_200_000_000 // 251 if "TESTS_LONG" in os.environ else 400)

    def run(c):
        if c.rank == 0:
            c.broadcast_object(data)
            return c.recv_object(1)
        got = c.broadcast_object(None)
        c.send_object(len(got), 0)
        return got == data

    assert two.each(run) == [len(data), True]


CALLS = {
    "all_gather": lambda c, obj: c.all_gather_object(obj),
    "gather": lambda c, obj: c.gather_object(obj, 0),
    "broadcast": lambda c, obj: c.broadcast_object(obj, 1),
    "scatter": lambda c, obj: c.scatter_object([obj] * 4, 1),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("size", [1, 100000])
def test_an_object_that_cannot_be_pickled_is_an_error_on_all_ranks(four, name, size):
    def run(c):
        bad = c.rank == 1
        with pytest.raises(TypeError if bad else anyccl.InvalidUsage, match="not.this one") as caught:
            CALLS[name](c, Unpicklable() if bad else b"x" * size)
        if not bad:
            assert f"{name}_object: rank 1 cannot send its object: TypeError: not?this one" in str(caught.value)
        return c.all_gather_object(c.rank)  # the communicator goes on

    assert four.each(run) == [[0, 1, 2, 3]] * 4


def test_an_object_that_cannot_be_pickled_is_an_error_at_both_ends_of_a_message(two):
    def run(c):
        if c.rank == 0:
            with pytest.raises(TypeError, match="not.this one"):
                c.send_object(Unpicklable(), 1)
        else:
            with pytest.raises(anyccl.InvalidUsage, match="rank 0 cannot send its object"):
                c.recv_object(0)
        return c.all_gather_object(c.rank)

    assert two.each(run) == [[0, 1]] * 2


def test_a_long_error_is_cut():
    class Long:
        def __reduce__(self):
            raise TypeError("long" * 1000)

    with anyccl.Communicator.init_all(1)[0] as comm, pytest.raises(TypeError):
        comm.all_gather_object(Long())


@pytest.mark.parametrize("objs", [None, [1], [1, 2, 3]])
def test_a_root_with_another_number_of_objects_is_an_error_on_all_ranks(two, objs):
    def run(c):
        with pytest.raises(anyccl.Error, match="needs one for each of 2 ranks"):
            c.scatter_object(objs if c.rank == 0 else None)
        return c.all_gather_object(1)

    assert two.each(run) == [[1, 1]] * 2


def test_a_root_that_is_not_there_is_refused(alone):
    for call in (alone.broadcast_object, alone.gather_object, alone.scatter_object):
        with pytest.raises(anyccl.InvalidArgument, match=r"root 1 is not in 0\.\.0"):
            call([0], 1)


@pytest.mark.parametrize("named", [True, False])
def test_threads_with_one_tag_get_whole_objects(two, named):
    """Each object is one message, so halves of two do not meet."""
    rounds, threads = 60, 2
    objects = [(t, i, b"x" * (700 * (i % 3) + 10 * t)) for t in range(threads) for i in range(rounds)]

    def run(c):
        got = []

        def send(t):
            for i in range(rounds):
                c.send_object(objects[t * rounds + i], 1, tag=5)

        def receive(t):
            for _ in range(rounds):
                got.append(c.recv_object(0 if named else None, tag=5))
        started = [threading.Thread(target=send if c.rank == 0 else receive, args=(t,)) for t in range(threads)]
        for thread in started:
            thread.start()
        for thread in started:
            thread.join()
        return sorted(got)

    assert two.each(run)[1] == sorted(objects)


class Interrupts:
    """As Ctrl-C while it is pickled."""

    def __reduce__(self):
        raise KeyboardInterrupt


@pytest.mark.parametrize("call", [
    lambda c: c.all_gather_object(Interrupts() if c.rank == 0 else 1),
    lambda c: c.gather_object(Interrupts() if c.rank == 0 else 1, 1),
    lambda c: c.broadcast_object(Interrupts() if c.rank == 0 else None, 0),
    lambda c: c.scatter_object([1, Interrupts()] if c.rank == 0 else None, 0),
    lambda c: c.send_object(Interrupts(), 1) if c.rank == 0 else c.recv_object(0),
])
def test_an_interrupt_while_an_object_is_pickled_is_an_error_on_all(two, call):
    def run(c):
        with pytest.raises(KeyboardInterrupt if c.rank == 0 else anyccl.InvalidUsage):
            call(c)
        return c.all_reduce(np.ones(1))[0]

    assert two.each(run) == [2, 2]


def test_an_object_that_does_not_come(two):
    def run(c):
        if c.rank == 1:
            c.timeout = 0.2
            with pytest.raises(anyccl.Timeout, match="no object has come from rank 0 with tag 3"):
                c.recv_object(0, tag=3)
            c.timeout = None
        c.barrier()
        return c.all_reduce(np.ones(1))[0]

    assert two.each(run) == [2, 2]


def test_an_array_is_no_object(two):
    def run(c):
        if c.rank == 0:
            return c.send(np.ones(3), 1, tag=2)
        with pytest.raises(anyccl.InvalidUsage, match="rank 0 sends an array with tag 2"):
            c.recv_object(0, tag=2)
        return c.recv(np.empty(3), 0, tag=2)

    two.each(run)


@pytest.mark.parametrize("receive", [lambda c: c.recv(np.ones(1), -1), lambda c: c.recv_object(-1)])
def test_no_number_means_every_rank(two, receive):
    def run(c):
        with pytest.raises(anyccl.InvalidArgument, match="src -1 is not a rank"):
            receive(c)

    two.each(run)


OBJECTS = {"all_gather": 0, "gather": 0, "broadcast": 1, "scatter": 1}  # a rank that waits for others


@pytest.fixture
def ctrl_c():
    """Interrupts the main thread soon, as a person does."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    main = threading.main_thread().ident

    def interrupt(inside):
        """When the main thread is in that function, and, a moment later, in the library's call there."""
        while sys._current_frames()[main].f_code.co_name != inside:
            time.sleep(0.001)
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)

    yield lambda inside: threading.Thread(target=interrupt, args=(inside,), daemon=True).start()
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("name", OBJECTS)
@pytest.mark.parametrize("size", [1, 100000])
def test_an_interrupt_while_objects_travel_is_no_loss(two, ctrl_c, name, size):
    """The other rank gets what it waits for, and the next calls are in their places."""
    waits = OBJECTS[name]
    call = {
        "all_gather": lambda c: c.all_gather_object(b"x" * size),
        "gather": lambda c: c.gather_object(b"x" * size, 1),
        "broadcast": lambda c: c.broadcast_object(b"x" * size, 0),
        "scatter": lambda c: c.scatter_object([b"x" * size] * 2, 0),
    }[name]
    ctrl_c("_exchange")
    with pytest.raises(KeyboardInterrupt):
        call(two.comms[waits])
    result = call(two.comms[1 - waits])
    if name == "all_gather":
        assert result == [b"x" * size] * 2
    assert two.each(lambda c: c.all_gather_object(c.rank)) == [[0, 1]] * 2
    two.each(lambda c: c.destroy())


def held_sequence(comm, in_thread):
    """Another thread is in a sequence of `comm` until the event that this returns is set."""
    begun, ended = threading.Event(), threading.Event()

    def hold():
        with anyccl.sequence(comm):
            begun.set()
            ended.wait(60)

    in_thread(hold)
    assert begun.wait(60)
    return ended


def test_an_interrupt_behind_a_sequence_of_another_thread(two, ctrl_c, in_thread):
    """What did not begin is not called, and objects, which others wait for, come when it is over."""
    first, second = two.comms
    ended = held_sequence(first, in_thread)
    for call, inside in ((lambda: first.all_reduce(np.ones(1)), "<lambda>"),
                         (lambda: first.all_gather_object(1), "_exchange")):
        ctrl_c(inside)
        with pytest.raises(KeyboardInterrupt):
            call()
    ended.set()
    assert second.all_gather_object(2) == [1, 2]
    assert two.each(lambda c: c.all_reduce(np.ones(1))[0]) == [2, 2]


def test_a_time_limit_holds_behind_a_sequence_of_another_thread(two, in_thread):
    first, second = two.comms
    ended = held_sequence(first, in_thread)
    with pytest.raises(anyccl.Timeout, match="several operations"):
        first.all_reduce(np.ones(1), timeout=0.7)
    first.timeout = 0.7
    for call in (lambda: anyccl.sequence(first).__enter__(), lambda: first.all_gather_object(1)):
        with pytest.raises(anyccl.Timeout, match="several operations"):
            call()
    first.timeout = None
    ended.set()
    assert two.each(lambda c: c.all_reduce(np.ones(1))[0]) == [2, 2]


def test_a_sequence_ends_with_its_communicator(alone):
    with anyccl.sequence(alone):
        alone.destroy()


def test_a_sequence_is_one_place_in_the_order_of_calls(two, in_thread):
    def run(c):
        order = []

        def other():
            order.append(("other", c.all_reduce(np.ones(3))[2]))

        with anyccl.sequence(c):
            c.all_reduce(np.ones(1))
            thread = threading.Thread(target=other)
            thread.start()
            time.sleep(0.05)  # in which its call would come too early, if nothing kept it back
            order.append(("mine", c.all_reduce(np.ones(2))[1]))
            with pytest.raises(anyccl.InvalidUsage, match="in a sequence of comm already"), anyccl.sequence(c):
                pass
        thread.join()
        return order

    assert two.each(run) == [[("mine", 2), ("other", 2)]] * 2
