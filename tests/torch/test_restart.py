"""torchrun's elastic agent starts all ranks again after one has died, and nothing of the first round disturbs them.

Once as users start it; and in this process, where it forks the ranks from a server that has imported torch.
"""

import datetime
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import time

import pytest
import torch
import torch.distributed as dist
from ranks import fork_ranks
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

RANKS = 3


def is_first_round():
    return os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"


def rank():
    return int(os.environ["RANK"])


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def join():
    torch.set_num_threads(1)
    dist.init_process_group("anyccl", timeout=datetime.timedelta(seconds=300))


def in_an_operation():
    join()
    step = 0
    while is_first_round():
        step += 1
        if rank() == 1 and step == 20:
            die()
        dist.all_reduce(torch.ones(5000))


def while_the_others_join():
    if is_first_round() and rank() == 1:
        die()
    join()


def while_the_others_keep_on_after_their_error():
    join()
    if is_first_round():
        try:
            while True:
                if rank() == 1:
                    die()
                dist.all_reduce(torch.ones(5000))
        except dist.DistError as error:
            print(error, flush=True)
            while True:
                signal.pause()


FIRST_ROUNDS = [while_the_others_join, while_the_others_keep_on_after_their_error]  # the other one runs under torchrun


def be_rank(first_round):
    """Says whether it had the right results, after a restart."""
    first_round()
    x = torch.full([100_000], rank() + 1.0)
    dist.all_reduce(x)
    objects = [None] * RANKS
    dist.all_gather_object(objects, rank())
    group = dist.new_group([0, 2])
    if rank() != 1:
        dist.barrier(group)
    dist.destroy_process_group()
    return not is_first_round() and x.eq(6).all().item() and objects == [0, 1, 2]


def run_agent(_, first_round):
    multiprocessing.set_forkserver_preload(["anyccl.torch"])
    config = LaunchConfig(min_nodes=1, max_nodes=1, nproc_per_node=RANKS, rdzv_backend="c10d", rdzv_endpoint="localhost:0",
                          run_id="restart", max_restarts=1, start_method="forkserver")
    return elastic_launch(config, be_rank)(first_round)


@pytest.mark.parametrize("first_round", FIRST_ROUNDS)
def test_a_rank_kills_itself(first_round):
    begin = time.monotonic()
    assert fork_ranks(1, run_agent, first_round, deadline_s=200) == [{0: True, 1: True, 2: True}]
    assert time.monotonic() - begin < 150  # nothing waits for the time limit of the group


def test_a_rank_kills_itself_under_torchrun():
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={RANKS}", "--max-restarts=1",
             __file__, folder], capture_output=True, text=True, timeout=200, env={**os.environ, "OMP_NUM_THREADS": "1"})
        assert done.returncode == 0, done.stdout + done.stderr
        assert sorted(os.listdir(folder)) == ["right 0", "right 1", "right 2"], done.stdout + done.stderr


if __name__ == "__main__":
    right = be_rank(in_an_operation)
    open(os.path.join(sys.argv[1], f"{'right' if right else 'wrong'} {rank()}"), "w").close()
