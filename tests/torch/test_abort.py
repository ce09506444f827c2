"""An abort ends what is blocked, whatever the peers do, and the process can make groups again."""

import json
import os
import signal
import tempfile
import threading
import time

import pytest
import torch
import torch.distributed as dist
from ranks import fork_ranks, join, run_ranks, tell, wait_for

import anyccl.torch  # noqa: F401

c10d = dist.distributed_c10d
BLOCKED = {
    "all_reduce": lambda: dist.all_reduce(torch.ones(3)),
    "recv": lambda: dist.recv(torch.ones(3), 1),
    "work": lambda: dist.all_reduce(torch.ones(3), async_op=True).wait(),
    "future": lambda: dist.all_reduce(torch.ones(3), async_op=True).get_future().wait(),
    "barrier": lambda: dist.barrier(),
}
ABORTS = {
    "backend": lambda: dist.group.WORLD._get_backend(torch.device("cpu")).abort(),
    "group": lambda: dist.group.WORLD.abort(),
    "all groups": lambda: c10d._abort_process_group(),
}


def open_operations():
    with tempfile.TemporaryDirectory() as folder:
        dist.group.WORLD._get_backend(torch.device("cpu"))._dump(folder + "/dump")
        with open(folder + "/dump", encoding="utf-8") as file:
            return sum("ended_ns" not in entry for entry in json.load(file)["entries"])


class Blocked(threading.Thread):
    """A thread in a call that never returns by itself, beside some others."""

    def __init__(self, call, others=0):
        super().__init__()
        self.call = call
        self.start()
        while open_operations() <= others:
            pass

    def run(self):
        try:
            self.call()
        except (RuntimeError, ValueError) as error:  # a future has lost the type
            if isinstance(error, ValueError):  # torch logs the error, for which it asks a group that is just taken away
                error = error.__context__
            self.error, self.ended = str(error), time.monotonic()


def joined(rank, folder):
    """In a group of two, of which rank 1 never calls anything."""
    join(rank, 2, folder)
    store = c10d._get_default_store()
    if rank == 1:
        store.set("process", str(os.getpid()))
        store.wait(["over"])
    store.wait(["process"])  # an abort also ends the start of a rank that comes later
    return store


def expect_end(blocked, begin):
    blocked.join(30)
    assert "anyccl: " in blocked.error and ("aborted" in blocked.error or "revoked" in blocked.error), blocked.error
    assert blocked.ended - begin < 10  # milliseconds, but for a busy machine


@pytest.mark.parametrize("what", BLOCKED)
@pytest.mark.parametrize("how", ABORTS)
def test_it_ends_a_call_of_another_thread(what, how):
    def body(rank, folder):
        store = joined(rank, folder)
        if rank == 1:
            return
        blocked = Blocked(BLOCKED[what])
        begin = time.monotonic()
        ABORTS[how]()
        expect_end(blocked, begin)
        store.set("over", "")
    with tempfile.TemporaryDirectory() as folder:
        fork_ranks(2, body, folder)


@pytest.mark.parametrize("state", [signal.SIGSTOP, signal.SIGKILL])
def test_it_ends_a_call_that_waits_for_a_rank_that_is_stopped_or_dead(state):
    def body(rank, folder):
        store = joined(rank, folder)
        if rank == 1:
            return
        process = int(store.get("process"))
        blocked = Blocked(BLOCKED["all_reduce"])
        os.kill(process, state)
        begin = time.monotonic()
        ABORTS["backend"]()
        blocked.join(30)
        assert blocked.ended - begin < 10
        dist.destroy_process_group()
        if state == signal.SIGSTOP:
            store.set("over", "")
            os.kill(process, signal.SIGCONT)
    with tempfile.TemporaryDirectory() as folder:
        fork_ranks(2, body, folder)


@pytest.mark.parametrize("how", ["backend", "all groups"])
def test_groups_are_made_again_in_the_same_processes(how):
    def body(rank, folder):
        for rounds in range(3):
            join(rank, 3, folder)
            group = dist.new_group([0, 2])
            x = torch.ones(4)
            dist.all_reduce(x)
            if rank != 1:
                dist.all_reduce(x, group=group)
            assert x.eq(3 if rank == 1 else 6).all()
            blocked = Blocked(BLOCKED["all_reduce"]) if rank == 0 else None
            tell(f"{rounds} blocked {rank}")
            wait_for(*(f"{rounds} blocked {other}" for other in range(3)))
            begin = time.monotonic()
            store = c10d._get_default_store()
            ABORTS[how]()
            if blocked:
                expect_end(blocked, begin)
            if how == "backend":
                with pytest.raises(dist.DistBackendError, match="aborted"):
                    dist.all_reduce(x)
                dist.destroy_process_group()
            assert not dist.is_initialized()
            store.set(f"{rounds} over {rank}", "")
            store.wait([f"{rounds} over {other}" for other in range(3)])
    with tempfile.TemporaryDirectory() as folder:
        fork_ranks(3, body, folder)


def test_of_a_group_leaves_the_others_alone():
    def body(rank):
        group = dist.new_group([0, 1])
        dist.all_reduce(torch.ones(3), group=group)
        dist.barrier()
        if rank == 0:
            c10d._abort_process_group(group)
        else:
            with pytest.raises(dist.DistBackendError, match="rank 0"):
                for _ in range(2):  # what the first one needs may be there
                    dist.all_reduce(torch.ones(3), group=group)
            dist.destroy_process_group(group)
        x = torch.ones(3)
        dist.all_reduce(x)
        assert x.eq(2).all()
    run_ranks(2, body)


def test_in_many_threads_at_once():
    def body(rank):
        blocked = [Blocked(lambda: dist.recv(torch.ones(3), 1, tag=1), others) for others in range(8 * (1 - rank))]
        backend = dist.group.WORLD._get_backend(torch.device("cpu"))
        if rank == 0:
            begin = time.monotonic()
            threads = [threading.Thread(target=backend.abort) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            for one in blocked:
                expect_end(one, begin)
            tell("over")
        else:
            wait_for("over")
    run_ranks(2, body)
