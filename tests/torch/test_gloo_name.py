"""Programs that name "gloo" run on anyccl, once anyccl.torch.replace_gloo() was called or ANYCCL_TORCH_AS_GLOO is set."""

import datetime
import os
import subprocess
import sys
import tempfile

import pytest
import torch
import torch._dynamo  # noqa: F401  DDP imports it: once, and not in every rank
import torch.distributed as dist
from ranks import count_of_torchs_own, fork_ranks, join, run_ranks

import anyccl.torch

REAL = dist.ProcessGroupGloo  # by the time the tests run


def as_gloo(size, function, **options):
    """Runs function(rank) in a group of the backend "gloo", in processes where that is anyccl."""
    def body(rank, folder):
        anyccl.torch.replace_gloo()
        join(rank, size, folder, backend="gloo", **options)
        function(rank)
        dist.destroy_process_group()
    with tempfile.TemporaryDirectory() as folder:
        return fork_ranks(size, body, folder)


def backend(group=None):
    return (group or dist.group.WORLD)._get_backend(torch.device("cpu"))


def test_a_group_of_that_name_is_anyccls():
    def body(rank):
        assert dist.get_backend() == "gloo" and type(backend()) is anyccl.torch.ProcessGroupAnyccl
        assert isinstance(backend(), dist.ProcessGroupGloo)
        assert isinstance(backend(), dist.distributed_c10d.ProcessGroupGloo)
        x = torch.ones(3, dtype=torch.int16)  # a type that Gloo refuses
        dist.all_reduce(x)
        assert x.eq(2).all()
        objects = [None] * 2
        assert count_of_torchs_own(lambda: dist.all_gather_object(objects, rank)) == 0 and objects == [0, 1]
        anyccl.torch.replace_gloo()  # again: no difference
        sub = dist.new_group([0, 1])
        assert type(backend(sub)) is anyccl.torch.ProcessGroupAnyccl
        assert list(backend(sub).options.global_ranks_in_group) == [0, 1]
    as_gloo(2, body)


def test_what_torch_keeps_for_its_own_backends():
    def body(rank):
        dist.monitored_barrier(timeout=datetime.timedelta(seconds=20))
        before = dist.group.WORLD._get_sequence_number_for_group()
        dist.barrier()
        assert dist.group.WORLD._get_sequence_number_for_group() == before + 1
        dist.distributed_c10d._set_pg_timeout(datetime.timedelta(seconds=7))
        assert backend().options._timeout == datetime.timedelta(seconds=7)
    as_gloo(2, body)


def test_the_log_of_ddp():
    """Torch reads Gloo's number of threads from whatever has its name."""
    def body(rank):
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
        model(torch.ones(1, 2)).sum().backward()
        data = model._get_ddp_logging_data()
        assert data["backend_name"] == "gloo" and data["gloo_num_threads"] == 2, data
    as_gloo(2, body)


def test_gloo_itself_stays_reachable():
    def body(rank):
        group = dist.new_group([0, 1], backend="real_gloo")
        assert type(backend(group)) is REAL and isinstance(backend(group), dist.ProcessGroupGloo)
        x = torch.ones(3)
        dist.all_reduce(x, group=group)
        assert x.eq(2).all()
    as_gloo(2, body)


@pytest.mark.parametrize("form", ["timeout", "keyword", "options"])
def test_the_class_is_called_as_programs_call_it(form):
    """As torch's RPC, vLLM's init_gloo_process_group and torchft do."""
    def body(rank, folder):
        anyccl.torch.replace_gloo()
        limit = datetime.timedelta(seconds=20)
        store = dist.FileStore(os.path.join(folder, "store"), 2)
        given = {"timeout": (limit,), "keyword": (), "options": (dist.ProcessGroupGloo._Options(),)}[form]
        if form == "options":
            given[0]._timeout = limit
        one = dist.ProcessGroupGloo(store, rank, 2, *given, **({"timeout": limit} if form == "keyword" else {}))
        one._set_sequence_number_for_group()
        assert type(one) is anyccl.torch.ProcessGroupAnyccl and one.options._timeout == limit
        group = dist.ProcessGroup(store, rank, 2)
        group._set_default_backend(dist.ProcessGroup.BackendType.GLOO)
        group._register_backend(torch.device("cpu"), dist.ProcessGroup.BackendType.GLOO, one)
        x = torch.ones(3)
        group.allreduce([x]).wait()
        assert x.eq(2).all()
    with tempfile.TemporaryDirectory() as folder:
        fork_ranks(2, body, folder)


def test_the_variable():
    """In the whole of a program that never heard of anyccl; with torch's check of all calls, too."""
    program = """
import os, sys, torch, torch.distributed as dist
torch.set_num_threads(1)
rank = 0 if os.fork() else 1
dist.init_process_group("gloo", store=dist.FileStore(sys.argv[1], 2), rank=rank, world_size=2)
x = torch.ones(3, dtype=torch.int16)
dist.all_reduce(x)
assert x.eq(2).all()
objects = [None] * 2
dist.all_gather_object(objects, {"rank": rank})
assert objects == [{"rank": 0}, {"rank": 1}]
dist.destroy_process_group()
sys.exit(0 if rank else os.waitstatus_to_exitcode(os.wait()[1]))
"""
    for detail in ("OFF", "DETAIL"):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, "-c", program, os.path.join(folder, "store")],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=90,
                                  env={**os.environ, "ANYCCL_TORCH_AS_GLOO": "1", "TORCH_DISTRIBUTED_DEBUG": detail})
        assert done.returncode == 0, done.stdout
        assert done.stdout.count('runs on anyccl where it asks for "gloo"') == 1, done.stdout
        assert "does not know" not in done.stdout, done.stdout


def test_nothing_is_replaced_unasked():
    def body(rank):
        assert type(backend()) is REAL
        dist.barrier()  # who leaves while another rank connects fails that one
    run_ranks(2, body, backend="gloo")


def test_a_class_over_it_keeps_its_methods():
    def body(rank):
        class Mine(dist.ProcessGroupGloo):
            def __init__(self, *arguments, **named):
                super().__init__(*arguments, **named)
                self.made = True

            def hello(self):
                return f"hello of {self.rank()}"
        made = Mine(dist.FileStore(store, 2), rank, 2, datetime.timedelta(seconds=20))
        assert made.hello() == f"hello of {rank}" and made.made and isinstance(made, dist.ProcessGroupGloo)
        x = torch.ones(2)
        made.allreduce([x]).wait()
        assert x.eq(2).all()
    with tempfile.TemporaryDirectory() as folder:
        store = os.path.join(folder, "second store")
        as_gloo(2, body)
