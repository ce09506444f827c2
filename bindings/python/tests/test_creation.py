"""Communicators that are created and finalized in the background."""

import threading

import numpy as np
import pytest

import anyccl


def ready(comms):
    for comm in comms:
        comm.wait_until_ready(60)
    return comms


def test_one_thread_creates_all_ranks_in_the_background():
    unique = anyccl.UniqueId.create()
    first = anyccl.Communicator.from_unique_id(unique, 0, 2, wait=False, name="pair")
    assert not first.ready and (first.rank, first.size) == (0, 2)
    assert repr(first) == "<anyccl.Communicator, rank 0 of 2, being created>"
    assert first.failure is None
    second = anyccl.Communicator.from_unique_id(unique, 1, 2, wait=False)
    comms = ready([first, second])
    assert first.ready and second.ready and repr(first) == "<anyccl.Communicator, rank 0 of 2>"
    with anyccl.group():
        sums = [c.all_reduce(np.array([c.rank + 1])) for c in comms]
    assert [s[0] for s in sums] == [3, 3]


def test_a_communicator_is_refused_before_it_is_ready():
    first = anyccl.Communicator.from_unique_id(anyccl.UniqueId.create(), 0, 2, wait=False)
    for call in (first.barrier, lambda: first.split(0), lambda: first.last_plan, first.finalize):
        with pytest.raises(anyccl.InvalidUsage, match="still being created"):
            call()
    with pytest.raises(anyccl.InProgress, match="not ready"):
        first.wait_until_ready(0.01)
    first.abort()
    with pytest.raises(anyccl.InvalidUsage, match="aborted"):
        first.ready


def test_a_communicator_that_is_dropped_before_it_is_ready_waits_for_nobody():
    anyccl.Communicator.from_unique_id(anyccl.UniqueId.create(), 0, 2, wait=False)


def test_a_creation_that_fails_says_why():
    comm = anyccl.Communicator.from_unique_id(anyccl.UniqueId.create(), 3, 2, wait=False)
    with pytest.raises(anyccl.InvalidArgument, match="rank"):
        comm.wait_until_ready(60)
    with pytest.raises(anyccl.InvalidArgument, match="rank"):
        comm.barrier()
    assert isinstance(comm.failure, anyccl.InvalidArgument)


def test_threads_create_communicators_at_the_same_time():
    ids = [anyccl.UniqueId.create() for _ in range(3)]
    sums = []

    def join(unique, rank):
        with anyccl.Communicator.from_unique_id(unique, rank, 2, name=f"rank {rank}") as comm:
            sums.append(int(comm.all_reduce(np.array([rank + 1]))[0]))

    threads = [threading.Thread(target=join, args=(unique, rank)) for unique in ids for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sums == [3] * 6


def test_a_split_in_the_background(four):
    parts = [c.split(c.rank % 2, -c.rank, wait=False, name="half") for c in four.comms]
    ready(parts)
    assert [(p.rank, p.size) for p in parts] == [(1, 2), (1, 2), (0, 2), (0, 2)]
    assert four.each(lambda c: c.all_reduce(np.ones(1))[0]) == [4] * 4
    for part in parts:
        part.abort()


def test_calls_on_what_is_being_split_are_refused(two):
    part = two.comms[0].split(0, wait=False)
    with pytest.raises(anyccl.InvalidUsage, match="a part of this communicator is being created"):
        two.comms[0].barrier()
    with pytest.raises(anyccl.InvalidUsage, match="still being created"):
        part.rank
    other = two.comms[1].split(0, wait=False)
    ready([part, other])
    assert two.each(lambda c: c.all_reduce(np.ones(1))[0]) == [2, 2]


def test_a_rank_without_a_color_gets_what_can_only_be_destroyed(two):
    parts = ready([c.split(c.rank or None, wait=False) for c in two.comms])
    with pytest.raises(anyccl.InvalidUsage, match="finalized"):
        parts[0].barrier()
    assert parts[1].size == 1
    for part in parts:
        part.destroy()


@pytest.mark.parametrize("wait", [True, False])
def test_a_finalized_communicator_can_only_be_destroyed(wait):
    unique = anyccl.UniqueId.create()
    comms = ready([anyccl.Communicator.from_unique_id(unique, r, 2, wait=False) for r in range(2)])
    if wait:
        threads = [threading.Thread(target=c.finalize) for c in comms]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    else:
        for c in comms:
            c.finalize()
    ready(comms)
    for c in comms:
        assert repr(c).endswith(", finalized>")
        with pytest.raises(anyccl.InvalidUsage, match="finalized: it can only be destroyed"):
            c.barrier()
        c.destroy()


def test_to_finalize_ends_in_time_though_a_receive_never_does():
    unique = anyccl.UniqueId.create()
    comms = ready([anyccl.Communicator.from_unique_id(unique, r, 2, wait=False) for r in range(2)])
    never = comms[0].recv(bytearray(4), 1, async_op=True)
    comms[0].finalize(timeout=0.05)
    with pytest.raises(anyccl.Timeout):
        comms[0].wait_until_ready(60)
    with pytest.raises(anyccl.Timeout):
        never.wait()
    comms[0].destroy()
    comms[1].destroy()


def test_the_time_to_create_has_a_limit_which_names_the_missing_ranks():
    with pytest.raises(anyccl.Timeout, match="missing: 0, 2"):
        anyccl.Communicator.from_unique_id(anyccl.UniqueId.create(), 1, 3, timeout=0.3)


@pytest.mark.parametrize("create", [
    lambda c: c.split(0, timeout=0.3),
    lambda c: c.shrink(timeout=0.3),
    lambda c: c.grow(3, anyccl.UniqueId.create(), timeout=0.3),
])
def test_the_limit_of_making_one_of_another_names_the_rank_that_does_not_come(two, create):
    with pytest.raises(anyccl.Timeout, match="rank 1"):
        create(two.comms[0])


def test_the_limit_of_a_launched_rank_comes_before_the_environment(monkeypatch):
    for name, value in ("RANK", "1"), ("WORLD_SIZE", "2"), ("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", "1"):
        monkeypatch.setenv(name, value)
    with pytest.raises(anyccl.Timeout, match="is rank 0 running"):
        anyccl.Communicator.from_env(timeout=0.3, name="launched")
    comm = anyccl.Communicator.from_env(timeout=0.3, wait=False)
    with pytest.raises(anyccl.Timeout, match="is rank 0 running"):
        comm.wait_until_ready(60)


@pytest.mark.parametrize("wrong", [0, -1, 0.0001, 86401, float("inf"), float("nan")])
def test_a_limit_that_is_none_is_refused(alone, wrong):
    with pytest.raises(anyccl.InvalidArgument, match="0.001 to 86400"):
        alone.split(0, timeout=wrong)
    assert alone.split(0, timeout=86400).size == 1


def test_a_communicator_that_verifies_says_so_where_it_cannot():
    alone = anyccl.Communicator.init_all(1)[0]
    x = np.ones(4)
    with alone.split(0, verify=16, verify_later=True, reproducible=3) as verified:
        assert (verified.all_reduce(x) == x).all()
        with pytest.raises(anyccl.InvalidUsage, match="prod.*config->verify"):
            verified.all_reduce(x, op="prod")
    with alone.split(0, verify=0) as plain:
        assert (plain.all_reduce(x, op="prod") == x).all()
    for wrong in ({"verify": -1}, {"reproducible": 4}):
        with pytest.raises(anyccl.InvalidArgument, match=next(iter(wrong))):
            alone.split(0, **wrong)


def test_ranks_that_differ_in_verification_hear_both():
    unique = anyccl.UniqueId.create()
    comms = [anyccl.Communicator.from_unique_id(unique, r, 2, wait=False, verify=1 + r) for r in range(2)]
    for comm in comms:
        with pytest.raises(anyccl.Error, match="config->verify"):
            comm.wait_until_ready(60)
