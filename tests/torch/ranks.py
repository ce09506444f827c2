"""Starts ranks as children of this process, which has imported torch already: a start takes milliseconds."""

import datetime
import gc
import os
import pickle
import select
import signal
import sys
import tempfile
import time
import traceback

import torch
import torch.distributed as dist

import anyccl.torch  # noqa: F401

if not hasattr(dist, "all_gather_single"):  # their names before torch 2.13
    dist.all_gather_single, dist.reduce_scatter_single = dist.all_gather_into_tensor, dist.reduce_scatter_tensor

BACKEND = "gloo" if "ANYCCL_TORCH_AS_GLOO" in os.environ else "anyccl"  # which is anyccl in both cases

torch.set_num_threads(1)  # OpenMP's threads do not survive a fork


class RankError(AssertionError):
    pass


def fork_ranks(size, function, *arguments, deadline_s=60):
    """Calls function(rank, *arguments) in `size` new processes; returns what they return, in order.

    Raises RankError with all their tracebacks if one fails, or when the deadline has passed. A rank that
    ends by itself (os._exit) returns its exit code, one that is killed the negative signal.
    """
    pipes, children = [], []
    sys.stdout.flush()
    sys.stderr.flush()
    gc.freeze()  # else a rank that collects garbage copies the pages of all Python objects
    for rank in range(size):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            _be_rank(writer, function, rank, arguments)
        os.close(writer)
        pipes.append(reader)
        children.append(child)
    answers = [b""] * size
    open_pipes = dict(zip(pipes, range(size)))
    end = time.monotonic() + deadline_s
    late = []
    while open_pipes:
        ready, _, _ = select.select(list(open_pipes), [], [], max(0, end - time.monotonic()))
        if not ready:
            late = sorted(open_pipes.values())
            for rank in late:
                os.kill(children[rank], signal.SIGABRT if "ABRT" in os.environ else signal.SIGKILL)
            break
        for pipe in ready:
            piece = os.read(pipe, 1 << 16)
            if piece:
                answers[open_pipes[pipe]] += piece
            else:
                del open_pipes[pipe]
    results, troubles = [], [f"rank {rank} was not done after {deadline_s} s" for rank in late]
    for rank, (child, pipe) in enumerate(zip(children, pipes)):
        os.close(pipe)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if not answers[rank]:
            results.append(code)
            continue
        ok, value = pickle.loads(answers[rank])
        results.append(value)
        if not ok:
            troubles.append(f"rank {rank}: {value}")
        elif code != 0:
            troubles.append(f"rank {rank} ended with {code}")
    if troubles:
        raise RankError("\n".join(troubles))
    return results


def _be_rank(pipe, function, rank, arguments):
    code = 1
    try:
        answer = (True, function(rank, *arguments))
        code = 0
    except BaseException:  # noqa: B902  the parent reports it
        answer = (False, traceback.format_exc())
    try:
        with os.fdopen(pipe, "wb") as file:
            file.write(pickle.dumps(answer))
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def run_ranks(size, function, *arguments, timeout_s=30, deadline_s=60, backend=BACKEND):
    """As fork_ranks, in a process group of that backend, which is destroyed afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        return fork_ranks(size, _in_group, size, folder, backend, timeout_s, function, arguments,
                          deadline_s=deadline_s)


def join(rank, size, folder, backend=BACKEND, timeout_s=30, **options):
    dist.init_process_group(backend, store=dist.FileStore(os.path.join(folder, "store"), size), rank=rank,
                            world_size=size, timeout=datetime.timedelta(seconds=timeout_s), **options)


def limit_operations(seconds):
    """From here on. Joining has had the time limit of the group: a busy machine does not reach it."""
    dist.group.WORLD._get_backend(torch.device("cpu"))._set_default_timeout(datetime.timedelta(seconds=seconds))


def tell(event):
    """Tells the ranks of the job that something has happened; see wait_for()."""
    dist.distributed_c10d._get_default_store().set(event, "")


def wait_for(*events):
    """Outside of all groups: no operation waits, and none is late for that."""
    dist.distributed_c10d._get_default_store().wait(list(events), datetime.timedelta(seconds=50))


def count_of_torchs_own(call):
    """How many objects torch's own object collectives pickle during call()."""
    c10d = dist.distributed_c10d
    kept, counted = c10d._object_to_tensor, []
    c10d._object_to_tensor = lambda *given: counted.append(1) or kept(*given)
    try:
        call()
    finally:
        c10d._object_to_tensor = kept
    return len(counted)


def _in_group(rank, size, folder, backend, timeout_s, function, arguments):
    join(rank, size, folder, backend, timeout_s)
    if backend != BACKEND:  # Gloo fails to start where a peer has ended meanwhile
        dist.barrier()
    result = function(rank, *arguments)
    dist.destroy_process_group()
    return result
