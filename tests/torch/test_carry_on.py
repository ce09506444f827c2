"""Groups of fewer ranks: after a death, a silent rank, a failure that all survive, and when a rank leaves in order."""

import datetime
import os
import signal
import tempfile

import pytest
import torch
import torch._dynamo  # noqa: F401  DDP imports it: once, and not in every rank
import torch.distributed as dist
from ranks import fork_ranks, join, run_ranks, tell, wait_for
from torch.nn.parallel import DistributedDataParallel

import anyccl.torch

SHRINK_ABORT = 1


def sum_of(value, group=None):
    x = torch.full([1000], float(value))
    dist.all_reduce(x, group=group)
    assert x.eq(x[0]).all()
    return x[0].item()


def meet(word="joined"):
    """Returns when all ranks are here, and none is in a call of the group."""
    tell(f"{word} {dist.get_rank()}")
    wait_for(*(f"{word} {rank}" for rank in range(dist.get_world_size())))


def use_until_failure(group=None, dies=False):
    """The error of the first operation that fails; this rank is killed before that if it `dies`."""
    for step in range(10 ** 9):
        if dies and step == 7:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            sum_of(1, group)
        except dist.DistError as error:
            return str(error)


def survive(size, victims, body):
    """Runs body(rank) on all ranks; the victims must be killed there, and the others must not."""
    done = run_ranks(size, lambda rank: body(rank) or "done")
    assert done == [-signal.SIGKILL if rank in victims else "done" for rank in range(size)]


def expect_ranks(left, me, group=None):
    """The group has the processes that had these ranks, each of which gives its own."""
    assert dist.get_world_size(group) == len(left) and left[dist.get_rank(group)] == me
    assert sum_of(me, group) == sum(left)
    everyone = [None] * len(left)
    dist.all_gather_object(everyone, me, group=group)
    assert everyone == left


class Training:
    """Steps of DDP on data that follows from the step and the rank's first number; keeps the last two states."""

    def __init__(self, rank):
        self.rank, self.module = rank, torch.nn.Linear(6, 1)
        with torch.no_grad():
            for parameter in self.module.parameters():
                parameter.fill_(0.5)
        self.step, self.states = 0, {}

    @staticmethod
    def loss(module, rank, step):
        torch.manual_seed(1000 * rank + step)
        x = torch.randn(16, 6)
        return (module(x) - x.sum(1, keepdim=True) - rank).square().mean()

    def run_to(self, end, killed_at=None):
        parallel = DistributedDataParallel(self.module)
        while self.step < end:
            self.states = {**{self.step - 1: self.states.get(self.step - 1)}, self.step: self.state()}
            parallel.zero_grad()
            loss = self.loss(parallel, self.rank, self.step)
            if self.step == killed_at:
                os.kill(os.getpid(), signal.SIGKILL)
            loss.backward()
            self.update(self.module)
            self.step += 1

    @staticmethod
    def update(module):
        with torch.no_grad():
            for parameter in module.parameters():
                parameter -= 0.1 * parameter.grad

    def state(self):
        return {name: value.clone() for name, value in self.module.state_dict().items()}

    def go_back(self):
        """To the step in which the rank is that is the furthest behind: one at most."""
        least = torch.tensor([self.step])
        dist.all_reduce(least, op=dist.ReduceOp.MIN)
        self.step = least.item()
        self.module.load_state_dict(self.states[self.step])


def trained_alone(ranks_of_step):
    """What the training comes to, by one process."""
    one = Training(0)
    for step, ranks in enumerate(ranks_of_step):
        one.module.zero_grad()
        (sum(Training.loss(one.module, rank, step) for rank in ranks) / len(ranks)).backward()
        Training.update(one.module)
    return one.state()


@pytest.mark.parametrize("by", ["carry_on", "shrink_group"])
def test_training_goes_on_without_a_rank_that_was_killed(by):
    steps, victim = 12, 2

    def body(rank):
        training = Training(rank)
        with pytest.raises(dist.DistError, match="rank 2"):
            training.run_to(steps, killed_at=5 if rank == victim else None)
        if by == "carry_on":
            anyccl.torch.carry_on()
        else:
            dist.shrink_group([victim], shrink_flags=SHRINK_ABORT)
        training.go_back()
        first = training.step
        training.run_to(steps)
        dist.barrier()
        return first, training.state()
    done = run_ranks(4, body)
    assert done[victim] == -signal.SIGKILL
    firsts, states = zip(*(one for rank, one in enumerate(done) if rank != victim))
    assert set(firsts) <= {4, 5} and len(set(firsts)) == 1
    expected = trained_alone([(0, 1, 2, 3)] * firsts[0] + [(0, 1, 3)] * (steps - firsts[0]))
    for state in states:
        for name, value in state.items():
            assert torch.allclose(value, expected[name], atol=1e-5), (name, value, expected[name])


def test_again_and_again():
    def body(rank):
        left = list(range(5))
        for victim in (4, 0, 2):
            assert f"rank {left.index(victim)}" in use_until_failure(dies=rank == victim)
            left.remove(victim)
            assert anyccl.torch.carry_on() is dist.group.WORLD
            assert dist.get_process_group_ranks(dist.group.WORLD) == list(range(len(left)))
            expect_ranks(left, rank)
        group = dist.new_group([0, 1])
        expect_ranks([1, 3], rank, group)
        dist.group.WORLD.monitored_barrier()
    survive(5, {4, 0, 2}, body)


@pytest.mark.parametrize("by", ["carry_on", "shrink_group"])
def test_of_a_group_beside_other_groups(by):
    def body(rank):
        group, other = dist.new_group([1, 3, 5]), dist.new_group([0, 2, 4])
        dist.barrier()
        if rank % 2 == 1:
            use_until_failure(group, dies=rank == 3)
            if by == "carry_on":
                group = anyccl.torch.carry_on(group)
            else:
                group = dist.shrink_group([1], group, SHRINK_ABORT)
            assert dist.get_process_group_ranks(group) == [1, 5]
            expect_ranks([1, 5], rank, group)
            x = torch.tensor([float(rank)])
            dist.broadcast(x, src=5, group=group)
            assert x.item() == 5
            group.monitored_barrier()
            dist.destroy_process_group(group)
        else:
            expect_ranks([0, 2, 4], rank, other)
            dist.barrier(other)
        anyccl.torch.carry_on()  # also of those that have not seen the death
        expect_ranks([0, 1, 2, 4, 5], rank)
    survive(6, {3}, body)


def test_groups_are_made_anew_beside_the_new_default_group():
    def body(rank):
        old = dist.new_group([0, 1, 3])
        use_until_failure(dies=rank == 1)
        anyccl.torch.carry_on()
        assert old not in dist.distributed_c10d._world.pg_map
        group = dist.new_group([0, 2])
        if rank != 2:
            expect_ranks([0, 3], rank, group)
        dist.barrier()
    survive(4, {1}, body)


def test_another_rank_than_the_excluded_one_has_died():
    def body(rank):
        use_until_failure(dies=rank == 1)
        if rank == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        with pytest.raises(dist.DistBackendError, match="rank 1, 2 of the group is gone, and not only 1: .*carry_on"):
            dist.shrink_group([1], shrink_flags=SHRINK_ABORT)
        dist.shrink_group([1, 2], shrink_flags=SHRINK_ABORT)
        expect_ranks([0, 3], rank)
    survive(4, {1, 2}, body)


@pytest.mark.parametrize("when", ["before", "after", "never"])
def test_without_a_rank_that_leaves_in_order(when):
    def body(rank, folder):
        join(rank, 4, folder)
        store = dist.distributed_c10d._get_default_store()
        work = dist.all_reduce(torch.ones(100_000), async_op=True)
        if rank == 1:
            if when == "after":
                store.wait(["shrunk"])
            work.wait()
            if when != "never":
                dist.destroy_process_group()
            store.set("left", "")
            store.wait(["over 0", "over 2", "over 3"])
            return
        if when == "before":
            store.wait(["left"])
        work.wait()
        dist.shrink_group([1])
        store.set("shrunk", "")
        assert dist.get_process_group_ranks(dist.group.WORLD) == [0, 1, 2]
        expect_ranks([0, 2, 3], rank)
        dist.shrink_group([0]) if rank != 0 else dist.destroy_process_group()
        if rank != 0:
            expect_ranks([2, 3], rank)
            dist.destroy_process_group()
        store.set(f"over {rank}", "")
    with tempfile.TemporaryDirectory() as folder:
        fork_ranks(4, body, folder)


def test_without_a_rank_that_is_stopped():
    def body(rank):
        store = dist.distributed_c10d._get_default_store()
        if rank == 1:
            store.set("process", str(os.getpid()))
            os.kill(os.getpid(), signal.SIGSTOP)
            with pytest.raises(dist.DistBackendError, match="anyccl: "):
                sum_of(1)
                sum_of(1)
            store.set("seen", "")
            return
        process = int(store.get("process"))
        with pytest.raises(dist.DistBackendError, match="rank 1"):
            sum_of(1)
        anyccl.torch.carry_on(exclude=[1] if rank == 0 else [])
        expect_ranks([0, 2], rank)
        dist.barrier()
        if rank == 0:
            os.kill(process, signal.SIGCONT)
        store.wait(["seen"])
    run_ranks(3, body, timeout_s=2)


def test_of_a_failure_that_all_survive():
    def body(rank):
        with pytest.raises(dist.DistBackendError):
            if rank == 0:
                sum_of(1)
            else:
                dist.broadcast(torch.ones(3), 0)
            dist.barrier()
        old = dist.group.WORLD
        assert anyccl.torch.carry_on() is not old
        expect_ranks([0, 1, 2], rank)
    run_ranks(3, body)


def test_a_rank_that_does_not_come_is_named_and_may_come_later():
    def body(rank):
        store = dist.distributed_c10d._get_default_store()
        meet()
        if rank == 2:
            store.wait(["0 knows", "1 knows"])
        else:
            os.environ["ANYCCL_TIMEOUT"] = "1"
            with pytest.raises(dist.DistBackendError, match="Timed out in shrink_group: .*nothing has come of .*rank 2"):
                anyccl.torch.carry_on()
            del os.environ["ANYCCL_TIMEOUT"]
            store.set(f"{rank} knows", "")
        anyccl.torch.carry_on()
        expect_ranks([0, 1, 2], rank)
    run_ranks(3, body)


def test_of_operations_that_are_open():
    def body(rank):
        meet()
        works = [dist.irecv(torch.ones(3), (rank + 1) % 3, tag=5)]
        futures = [dist.all_reduce(torch.ones(3), async_op=True).get_future() for _ in range(2)]
        torch.futures.wait_all(futures)
        if rank == 1:
            wait_for("0 has called", "2 has called")
            os.kill(os.getpid(), signal.SIGKILL)
        works.append(dist.all_reduce(torch.ones(3), async_op=True))
        tell(f"{rank} has called")
        wait_for("0 has called", "2 has called")
        anyccl.torch.carry_on()
        for work in works:
            with pytest.raises(dist.DistBackendError, match="anyccl: "):
                work.wait()
        expect_ranks([0, 2], rank)
    survive(3, {1}, body)


def test_the_store_goes_with_the_rank_that_has_it():
    def body(rank, reader, writer):
        port = 0 if rank == 0 else int(os.read(reader, 5))
        store = dist.TCPStore("127.0.0.1", port, 4, rank == 0, wait_for_workers=False)
        if rank == 0:
            os.write(writer, b"%05d" % store.port * 3)
        dist.init_process_group("anyccl", store=store, rank=rank, world_size=4)
        part = dist.new_group([0, 1, 2])
        for left in [1, 2, 3], [2, 3]:  # first rank 0 dies, then the next one, which has the second store
            use_until_failure(dies=dist.get_rank() == 0)
            with pytest.raises(dist.DistBackendError, match="shrink_group: the store of the group is gone"):
                dist.shrink_group([0], shrink_flags=SHRINK_ABORT)
            if len(left) == 3 and rank < 3:
                expect_ranks([1, 2], rank, anyccl.torch.carry_on(part))
            anyccl.torch.carry_on()
            expect_ranks(left, rank)
            dist.group.WORLD.monitored_barrier(datetime.timedelta(seconds=20))
            assert sum_of(1, dist.new_group([0, 1])) == 2 or dist.get_rank() > 1
        dist.destroy_process_group()
        return "done"
    reader, writer = os.pipe()
    assert fork_ranks(4, body, reader, writer) == [-signal.SIGKILL] * 2 + ["done"] * 2


def test_groups_of_other_backends_are_refused():
    def body(rank):
        with pytest.raises(ValueError, match="groups of the backend anyccl alone"):
            anyccl.torch.carry_on()
        with pytest.raises(TypeError, match="does not support shrinking"):
            dist.shrink_group([1 - rank])
    run_ranks(2, body, backend="gloo")


def test_wrong_arguments_leave_the_group_usable():
    def body(rank):
        for ranks, kind in ([], ValueError), ([2], ValueError), ([rank], RuntimeError):
            with pytest.raises(kind):
                dist.shrink_group(ranks)
        with pytest.raises(RuntimeError, match="excludeRanksList"):
            anyccl.torch.carry_on(exclude=[5])
        assert sum_of(1) == 2
        meet("done")
    run_ranks(2, body)


def test_under_the_name_gloo():
    def body(rank, folder):
        anyccl.torch.replace_gloo()
        join(rank, 3, folder, backend="gloo")
        use_until_failure(dies=rank == 2)
        anyccl.torch.carry_on()
        expect_ranks([0, 1], rank)
        assert dist.get_backend() == "gloo"
        dist.destroy_process_group()
    with tempfile.TemporaryDirectory() as folder:
        fork_ranks(3, body, folder)
