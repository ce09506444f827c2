"""torchrun's elastic agent starts all ranks again after one has died, and nothing of the first round disturbs them."""

import os
import subprocess
import sys
import textwrap
import time

import pytest

HEADER = """
import datetime, os, signal
import torch, torch.distributed as dist
torch.set_num_threads(1)
first = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
rank = int(os.environ["RANK"])
def die():
    os.kill(os.getpid(), signal.SIGKILL)
def join():
    dist.init_process_group("anyccl", timeout=datetime.timedelta(seconds=300))
"""
END = """
x = torch.full([100_000], rank + 1.0)
dist.all_reduce(x)
objects = [None] * 3
dist.all_gather_object(objects, rank)
group = dist.new_group([0, 2])
if rank != 1:
    dist.barrier(group)
os.write(1, b"right\\n" if x.eq(6).all() and objects == [0, 1, 2] else b"wrong\\n")  # in one piece: ranks share the pipe
dist.destroy_process_group()
"""
FIRST_ROUNDS = {
    "in an operation": """
        join()
        step = 0
        while first:
            step += 1
            if rank == 1 and step == 20:
                die()
            dist.all_reduce(torch.ones(5000))
    """,
    "while the others join": """
        if first and rank == 1:
            die()
        join()
    """,
    "while the others keep on after their error": """
        join()
        if first:
            try:
                while True:
                    if rank == 1:
                        die()
                    dist.all_reduce(torch.ones(5000))
            except dist.DistError as error:
                print(error, flush=True)
                while True:
                    signal.pause()
    """,
}


@pytest.mark.parametrize("first_round", FIRST_ROUNDS)
def test_a_rank_kills_itself(first_round, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(HEADER + textwrap.dedent(FIRST_ROUNDS[first_round]) + END)
    begin = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "3", "--max-restarts", "1",
         str(program)], capture_output=True, text=True, timeout=200, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stdout + done.stderr
    words = [line for line in done.stdout.splitlines() if line in ("right", "wrong")]
    assert words == ["right"] * 3, done.stdout + done.stderr
    assert time.monotonic() - begin < 150  # nothing waits for the time limit of the group
