"""What write_flight_record() writes is read by torch's own analyser, which finds the rank that is missing."""

import pickle
import tempfile

import pytest
import torch
import torch.distributed as dist
from ranks import run_ranks, tell, wait_for
from torch.distributed.flight_recorder.components.builder import build_db
from torch.distributed.flight_recorder.components.config_manager import JobConfig
from torch.distributed.flight_recorder.components.loader import read_dir

import anyccl.torch

SIZE = 3


def analysed(body, size=SIZE, **options):
    """What the analyser makes of the records of ranks that run body(rank, prefix)."""
    with tempfile.TemporaryDirectory() as folder:
        run_ranks(size, body, folder + "/record_", **options)
        arguments = JobConfig().parse_args([folder, "--prefix", "record_"])
        details, version = read_dir(arguments)
        return build_db(details, arguments, version)


def test_all_operations_are_matched():
    def body(rank, prefix):
        group = dist.new_group([0, 1], group_desc="pair")
        x, many = torch.ones(4), torch.ones(4 * SIZE)
        dist.all_reduce(x)
        dist.broadcast(x, 1)
        dist.reduce(x, 2)
        dist.all_gather_single(many, x)
        dist.reduce_scatter_single(x, many)
        dist.scatter(x, list(many.chunk(SIZE)) if rank == 0 else None, 0)
        dist.gather(x, list(many.chunk(SIZE)) if rank == 0 else None, 0)
        dist.barrier()
        if rank < 2:
            dist.all_reduce(torch.ones(2, dtype=torch.int64), group=group)
        assert anyccl.torch.write_flight_record(prefix) == f"{prefix}{rank}"

    found = analysed(body)
    assert {(group.desc, group.size) for group in found.groups} == {("default_pg", SIZE), ("pair", 2)}
    assert [one.collective_name for one in found.collectives if not one.pass_check] == []
    names = [one.collective_name for one in found.collectives]
    for name in "all_reduce", "broadcast", "reduce", "_all_gather_base", "_reduce_scatter_base", "scatter", "gather":
        assert f"gloo:{name}" in names
    assert names.count("gloo:all_reduce") == 2


@pytest.mark.parametrize("missing", range(SIZE))
def test_a_rank_that_does_not_come_is_found(missing):
    def body(rank, prefix):
        dist.all_reduce(torch.ones(4))
        if rank == missing:
            wait_for(*(f"{other} timed out" for other in range(SIZE) if other != missing))
        else:
            with pytest.raises(dist.DistBackendError):
                dist.all_reduce(torch.ones(9))
            tell(f"{rank} timed out")
        anyccl.torch.write_flight_record(prefix)

    failed = [one for one in analysed(body, timeout_s=2).collectives if one.missing_ranks]
    assert [(one.missing_ranks, one.collective_name, one.input_sizes) for one in failed] == [
        ({missing}, "gloo:all_reduce", [[9]])]


def test_another_size_is_found():
    def body(rank, prefix):
        with pytest.raises(dist.DistBackendError):
            dist.all_reduce(torch.ones(5 if rank == 1 else 4))
            dist.barrier()
        anyccl.torch.write_flight_record(prefix)

    wrong = [one for one in analysed(body, timeout_s=20).collectives if not one.pass_check]
    assert 1 in wrong[0].mismatch_collectives
    assert wrong[0].mismatch_collectives[1].input_sizes == [[5]]


def test_messages_have_their_ranks_and_sizes():
    def body(rank, prefix):
        if rank == 0:
            dist.send(torch.ones(7), 1)
        elif rank == 1:
            dist.recv(torch.empty(7), 0)
        path = anyccl.torch.write_flight_record(prefix)
        with open(path, "rb") as file:
            return [(one["profiling_name"], one["input_sizes"], one["state"], one["is_p2p"])
                    for one in pickle.load(file)["entries"] if one["is_p2p"]]

    with tempfile.TemporaryDirectory() as folder:
        sent, received, none = run_ranks(SIZE, body, folder + "/record_")
    assert sent == [("gloo:send 0->1", [[7]], "completed", True)]
    assert received == [("gloo:recv 1<-0", [[7]], "completed", True)]
    assert none == []
