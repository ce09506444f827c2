"""Several threads inside one communicator."""

import threading
import time

import numpy as np
import pytest

import anyccl


def test_a_thread_may_receive_while_another_one_reduces(two, in_thread):
    out, received = np.zeros(100000), threading.Event()
    in_thread(lambda: (two.comms[0].recv(out, 1, tag=7), received.set()))
    for _ in range(100):
        assert two.each(lambda c: c.all_reduce(np.ones(3)).tolist()) == [[2, 2, 2]] * 2
    assert not received.is_set()
    two.comms[1].send(np.full(100000, 5.0), 0, tag=7)
    assert received.wait(60) and out.min() == 5


def test_messages_pass_while_another_thread_splits(two, in_thread):
    first, second = two.comms
    in_thread(lambda: first.split(0))
    for _ in range(10000):  # until the split has begun, in which the second rank joins below
        if not first.ready:
            break
        time.sleep(0.001)
    out = np.zeros(1)
    receives = first.recv(out, 1, async_op=True)
    second.send(np.full(1, 4.0), 0)
    receives.wait(60)
    assert out[0] == 4
    with pytest.raises(anyccl.InvalidUsage, match="another communicator is being made"):
        first.all_reduce(np.ones(1))
    assert first.completed[0] >= 0
    second.split(0)


def test_threads_with_messages_of_their_own_do_not_disturb_each_other(two):
    def talk(c, tag, seen):
        out = np.zeros(1000, np.int64)
        for i in range(20):
            if c.rank == 0:
                c.send(np.full(1000, i * tag), 1, tag=tag)
                c.recv(out, 1, tag=tag)
            else:
                c.recv(out, 0, tag=tag)
                c.send(out + 1, 0, tag=tag)
            seen.append(int(out[0]))

    def run(c):
        seen = {tag: [] for tag in (1, 2, 3)}
        threads = [threading.Thread(target=talk, args=(c, tag, seen[tag])) for tag in seen]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return seen

    extra = {0: 1, 1: 0}
    for rank, seen in enumerate(two.each(run)):
        assert seen == {tag: [i * tag + extra[rank] for i in range(20)] for tag in (1, 2, 3)}


def test_a_function_of_an_operator_runs_while_other_threads_wait(two, in_thread):
    """The thread that makes progress for all needs the interpreter lock."""
    out = np.zeros(1)
    in_thread(lambda: two.comms[0].recv(out, 1))

    def run(c):
        op = c.create_operator(lambda a, b: np.add(a, b, out=b))
        for _ in range(20):
            assert c.all_reduce(np.ones(2000), op).sum() == 4000

    two.each(run)
    two.comms[1].send(np.ones(1), 0)


@pytest.mark.parametrize("end", ["destroy", "finalize"])
def test_a_communicator_does_not_end_while_a_thread_is_inside(two, in_thread, end):
    inside, go = threading.Event(), threading.Event()

    def add(a, b):
        inside.set()
        go.wait()
        b += a

    for c in two.comms:
        in_thread(lambda c=c: c.all_reduce(np.ones(1), c.create_operator(add)))
    inside.wait()
    refused = []
    for c in two.comms:
        try:
            getattr(c, end)()
        except anyccl.InvalidUsage as e:
            refused.append("another thread is inside a call" in str(e))
    go.set()
    assert refused and all(refused)
