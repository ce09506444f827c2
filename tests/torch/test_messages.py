"""Point to point: tags, any source, batches, both directions at once."""

import datetime
import time

import pytest
import torch
import torch.distributed as dist
from ranks import limit_operations, run_ranks, tell, wait_for

LARGE = 1 << 20  # elements: more than any transport takes before the receiver is there


def value(rank, number, numel=3):
    return torch.full((numel,), 100.0 * rank + number)


def test_tags_match_in_any_order():
    def body(rank):
        tags = [*range(6), 1 << 24, 2**31 - 1]
        if rank == 0:
            works = [dist.isend(value(0, tag), 1, tag=tag) for tag in tags]
            for work in works:
                work.wait()
        else:
            for tag in reversed(tags):
                x = torch.zeros(3)
                assert dist.recv(x, 0, tag=tag) == 0
                assert x.equal(value(0, tag))
    run_ranks(2, body)


def test_messages_of_one_tag_keep_their_order():
    def body(rank):
        if rank == 0:
            for number in range(100):
                dist.send(value(0, number), 1, tag=5)
        else:
            works, tensors = [], [torch.zeros(3) for _ in range(100)]
            for x in tensors:
                works.append(dist.irecv(x, 0, tag=5))
            for number, (work, x) in enumerate(zip(works, tensors)):
                work.wait()
                assert x.equal(value(0, number))
    run_ranks(2, body)


def test_any_source_says_who_sent():
    def body(rank):
        if rank != 0:
            for number in range(10):
                dist.send(value(rank, number), 0)
            return
        seen = {1: 0, 2: 0}
        for step in range(20):
            x = torch.zeros(3)
            if step % 2:
                source = dist.recv(x)
            else:
                work = dist.irecv(x)
                work.wait()
                source = work._source_rank()
            assert x.equal(value(source, seen[source]))
            seen[source] += 1
        assert seen == {1: 10, 2: 10}
    run_ranks(3, body)


def test_any_source_in_a_group_gives_ranks():
    def body(rank):
        group = dist.new_group([2, 1])
        if rank == 2:
            dist.send(value(2, 0), 1, group=group)
        elif rank == 1:
            assert dist.recv(torch.zeros(3), group=group) == 2
    run_ranks(3, body)


@pytest.mark.parametrize("numel", [0, 3, LARGE])
def test_both_directions_at_once(numel):
    def body(rank):
        peer = 1 - rank
        for number in range(3):
            x = torch.zeros(numel)
            works = [dist.isend(value(rank, number, numel), peer), dist.irecv(x, peer)]
            for work in works:
                work.wait()
            assert x.equal(value(peer, number, numel))
    run_ranks(2, body)


def test_a_message_to_oneself():
    def body(rank):
        x = torch.zeros(3)
        receive = dist.irecv(x, rank, tag=1)
        send = dist.isend(value(rank, 1), rank, tag=1)
        send.wait()
        receive.wait()
        assert x.equal(value(rank, 1))
    run_ranks(2, body)


@pytest.mark.parametrize("coalesced", [True, False])
@pytest.mark.parametrize("numel", [3, LARGE])
def test_batches(coalesced, numel):
    """All to all, sends first at one rank and receives first at the other."""
    def body(rank):
        peers = [r for r in range(3) if r != rank]
        for number in range(3):
            xs = {peer: torch.zeros(numel) for peer in peers}
            sends = [dist.P2POp(dist.isend, value(rank, number, numel), peer, tag=number) for peer in peers]
            receives = [dist.P2POp(dist.irecv, xs[peer], peer, tag=number) for peer in peers]
            batch = sends + receives if rank else receives + sends
            if coalesced:
                works = dist.batch_isend_irecv(batch)
                assert len(works) == 1
            else:
                works = [op.op(op.tensor, op.peer, tag=op.tag) for op in batch]
            for work in works:
                work.wait()
            for peer, x in xs.items():
                assert x.equal(value(peer, number, numel))
    run_ranks(3, body)


def test_messages_do_not_wait_for_collectives():
    def body(rank):
        x = torch.ones(5)
        if rank == 0:
            work = dist.all_reduce(x, async_op=True)
            dist.send(value(0, 0), 1)  # rank 1 comes to the collective only after it
            work.wait()
        else:
            y = torch.zeros(3)
            dist.recv(y, 0)
            dist.all_reduce(x)
        assert x.eq(2).all()
    run_ranks(2, body)


def test_a_receive_may_wait_longer_than_the_time_limit():
    """Nobody waits for it: the limit counts while somebody does."""
    def body(rank):
        x = torch.zeros(3)
        if rank == 0:
            early = dist.irecv(x, 1, tag=5)
            for _ in range(8):  # 2.4 s: more than the limit
                dist.recv(torch.zeros(3), 1)
            assert not early.is_completed()
            dist.send(value(0, 1), 1)
            early.wait()
            assert x.equal(value(1, 7))
        else:
            for number in range(8):
                time.sleep(0.3)
                dist.send(value(1, number), 0)
            dist.recv(x, 0)
            dist.send(value(1, 7), 0, tag=5)
    run_ranks(2, body, timeout_s=2)


@pytest.mark.parametrize("batch", [False, True])
def test_the_time_limit_of_a_receive_names_the_sender(batch):
    def body(rank):
        limit_operations(1)
        if rank == 1:
            wait_for("timed out")
            return
        x = torch.zeros(3)
        work = dist.batch_isend_irecv([dist.P2POp(dist.irecv, x, 1)])[0] if batch else dist.irecv(x, 1)
        with pytest.raises(dist.DistBackendError, match="Timed out waiting 50 ms"):
            work.wait(datetime.timedelta(milliseconds=50))
        begin = time.monotonic()
        with pytest.raises(dist.DistBackendError, match="Timed out in .*1000 ms.*rank 1"):
            work.wait()
        assert time.monotonic() - begin > 0.9
        tell("timed out")
        with pytest.raises(dist.DistBackendError, match="anyccl: "):
            dist.send(x, 1)
    run_ranks(2, body)


def test_a_receive_that_nobody_waits_for_ends_with_a_group_of_one():
    def body(rank):
        group = dist.new_group([rank], timeout=datetime.timedelta(seconds=1))
        x = torch.zeros(3)
        work = group.recv_anysource([x], 4)
        dropped = group.recv_anysource([torch.zeros(3)], 5)
        del dropped
        dist.destroy_process_group(group)
        with pytest.raises(dist.DistBackendError, match="has only one side"):
            work.wait()
    begin = time.monotonic()
    run_ranks(2, body)
    assert time.monotonic() - begin < 28


def test_pipelines_of_many_messages():
    def body(rank):
        for number in range(200):
            x = torch.zeros(3)
            works = []
            if rank > 0:
                works.append(dist.irecv(x, rank - 1))
                works[-1].wait()
            else:
                x = value(0, number)
            if rank < 2:
                dist.isend(x.clone(), rank + 1)  # dropped: its tensor lives until it is sent
            if rank == 2:
                assert x.equal(value(0, number))
        dist.barrier()
    run_ranks(3, body)


def test_wrong_arguments_are_named():
    def body(rank):
        group = dist.group.WORLD
        backend = group._get_backend(torch.device("cpu"))
        for call, text in [(lambda: group.send([torch.ones(1)], 5, 0), "rank 5 is not in this group of 2"),
                           (lambda: group.send([torch.ones(1)], 1 - rank, -1), "tag -1"),
                           (lambda: group.recv([torch.ones(1)], 1 - rank, -(2**31)), "tag -2147483648"),
                           (lambda: group.recv([torch.ones(1)] * 2, 0, 0), "requires a single-element tensor list"),
                           (lambda: backend.send([torch.ones(1, device="meta")], 0, 0), "tensor is on meta")]:
            with pytest.raises(RuntimeError, match=text):
                call()
        dist.barrier()
    run_ranks(2, body)
