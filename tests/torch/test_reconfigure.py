"""A group that is given other members: torch 2.14 and later."""

import os
import signal
import tempfile
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
from ranks import fork_ranks


def rendezvous(store, round_, place, size):
    """The part of the program: all members tell each other their handles."""
    store.set(f"{round_}/{place}", dist._get_reconfigure_handle())
    return [store.get(f"{round_}/{i}").decode() for i in range(size)]


def sum_is(expected):
    x = torch.ones(1000)
    dist.all_reduce(x)
    assert x.eq(expected).all(), (x[0], expected)


def run_over_a_store(body, size):
    with tempfile.TemporaryDirectory() as folder:
        def begin(rank):
            store = dist.FileStore(folder + "/store")
            store.set_timeout(timedelta(seconds=60))
            dist.init_process_group("anyccl", store=dist.PrefixStore(f"init{rank}", store), rank=0, world_size=1,
                                    enable_reconfigure=True, timeout=timedelta(seconds=20))
            return body(rank, store)
        return fork_ranks(size, begin)


def test_members_come_and_go():
    def body(rank, store):
        with pytest.raises(dist.DistBackendError, match="has to be reconfigured first"):
            sum_is(1)
        if rank < 3:
            dist._reconfigure(1, rendezvous(store, 1, rank, 3)).wait()
            assert (dist.get_rank(), dist.get_world_size()) == (rank, 3)
            sum_is(3)
            if rank == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            with pytest.raises(dist.DistBackendError, match="rank 1 "):
                sum_is(3)
            dist._reconfigure(2, rendezvous(store, 2, rank // 2, 2)).wait()
            assert (dist.get_rank(), dist.get_world_size()) == (rank // 2, 2)
            sum_is(2)
        place = {0: 2, 2: 1, 3: 0}[rank]  # rank 3 is new, and leads
        dist._reconfigure(3, rendezvous(store, 3, place, 3)).wait()
        assert dist.get_rank() == place
        sum_is(3)
        gathered = [torch.empty(1) for _ in range(3)]
        dist.all_gather(gathered, torch.tensor([float(place)]))
        assert gathered == [torch.tensor([float(i)]) for i in range(3)]
        dist.destroy_process_group()
    assert run_over_a_store(body, 4)[1] == -signal.SIGKILL


def test_a_set_of_handles_is_ranked_by_the_backend():
    def body(rank, store):
        dist._reconfigure(7, set(rendezvous(store, 1, rank, 3))).wait()
        sum_is(3)
        return dist.get_rank()
    assert sorted(run_over_a_store(body, 3)) == [0, 1, 2]


def test_bad_handles_are_errors_that_leave_the_group_as_it_was():
    def body(rank, store):
        handles = rendezvous(store, 1, rank, 2)
        dist._reconfigure(1, handles).wait()
        sum_is(2)
        own, other = rendezvous(store, 2, rank, 2)[::1 if rank == 0 else -1]
        for wrong, why in [([other], "without that of this rank"), ([own, own], "twice"), (["nonsense", own], "none of")]:
            with pytest.raises((RuntimeError, ValueError), match=why):
                dist._reconfigure(2, wrong)
        sum_is(2)
    run_over_a_store(body, 2)


def test_members_that_do_not_come_are_an_error_after_the_timeout():
    def body(rank, store):
        handles = rendezvous(store, 1, rank, 2)
        if rank == 0:
            with pytest.raises(dist.DistBackendError, match="rank"):
                dist._reconfigure(1, handles, timeout=timedelta(seconds=1)).wait()
        store.set(f"done {rank}", "")
        store.wait(["done 0", "done 1"])
    run_over_a_store(body, 2)


if not hasattr(dist.ProcessGroup, "reconfigure"):  # nothing of this can be called
    for name in [name for name in globals() if name.startswith("test_")]:
        del globals()[name]

    def test_torch_is_too_old_for_it():
        assert tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 14)
