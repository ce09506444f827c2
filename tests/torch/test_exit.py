"""Programs end as they should, however they begin and whatever is still under way."""

import os
import select
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import pytest

HEADER = """
import datetime, os, sys, threading, time
import torch, torch.distributed as dist
import anyccl.torch
torch.set_num_threads(1)
def join(rank, size, folder):
    dist.init_process_group("anyccl", store=dist.FileStore(folder + "/store", size), rank=rank, world_size=size,
                            timeout=datetime.timedelta(seconds=30))
"""
# Reads a line for each program: the number of ranks, a folder, and the program as Python text. Forks the ranks, which leave
# the loop, and answers with their exit codes.
SERVER = """
def be_rank_of_next():
    for line in sys.stdin:
        size, folder, body = eval(line)
        children = []
        for rank in range(size):
            children.append(os.fork())
            if children[-1] == 0:
                output = os.open(folder + "/output", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                os.dup2(output, 1)
                os.dup2(output, 2)
                return rank, size, folder, body
        print([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children], flush=True)
    sys.exit()
rank, size, folder, body = be_rank_of_next()
exec(body)
"""


@pytest.fixture(scope="module")
def run_script():
    """run_script(body, size=2, expected=0): runs `body` on some ranks (names: rank, size, folder), after HEADER.

    Returns all output. Each rank ends as programs do, by the end of its main module: so they are not children of pytest, but
    of an interpreter that has only imported torch.
    """
    server = subprocess.Popen([sys.executable, "-c", HEADER + SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True, start_new_session=True)

    def run(body, size=2, expected=0):
        with tempfile.TemporaryDirectory() as folder:
            print((size, folder, textwrap.dedent(body)), file=server.stdin, flush=True)
            ready, _, _ = select.select([server.stdout], [], [], 90)
            codes = server.stdout.readline().strip() if ready else "not done after 90 s"
            output = Path(folder, "output").read_text()
        assert codes == str([expected] * size), f"{codes}\n{output}"
        return output
    yield run
    os.killpg(server.pid, signal.SIGKILL)
    server.communicate()


def quiet(output):
    """Nothing that looks like a crash; torch itself warns about a missing destroy_process_group."""
    for word in ("terminate", "FATAL", "Fatal", "Segmentation", "Traceback", "abort"):
        assert word not in output, output


@pytest.mark.parametrize("attempt", range(500 if "TESTS_LONG" in os.environ else 1))  # of two ranks each
def test_without_destroying_the_group_and_with_pending_works(run_script, attempt):
    quiet(run_script("""
        join(rank, size, folder)
        x = torch.ones(1 << 16)
        works = [dist.all_reduce(x, async_op=True) for _ in range(3)]
        dist.all_reduce(torch.ones(3), async_op=True)
        future = dist.all_reduce(torch.ones(3), async_op=True).get_future().then(lambda f: f.value())
        never = dist.irecv(torch.ones(3), 1 - rank, tag=7)
        dist.irecv(torch.ones(3), 1 - rank, tag=8)
        dist.isend(torch.ones(1 << 21), 1 - rank, tag=9)
    """))


def test_an_exception_ends_all_ranks(run_script):
    begin = time.monotonic()
    output = run_script("""
        join(rank, size, folder)
        work = dist.all_reduce(torch.ones(3), async_op=True)
        if rank == 0:
            raise SystemExit(3)
        work.wait()
        try:
            dist.all_reduce(torch.ones(3))
        except dist.DistBackendError as error:
            print("seen", error)
            sys.exit(3)
    """, expected=3)
    assert "seen anyccl: " in output and "rank 0" in output
    assert time.monotonic() - begin < 25


def test_while_a_callback_is_running(run_script):
    output = run_script("""
        join(rank, size, folder)
        def long(future):
            for _ in range(150):
                time.sleep(0.01)
            print("it ended")
        future = dist.all_reduce(torch.ones(3), async_op=True).get_future().then(long)
        dist.barrier()
    """)
    quiet(output)
    assert output.count("it ended") == 2


def test_while_the_last_reference_goes_in_another_thread(run_script):
    quiet(run_script("""
        join(rank, size, folder)
        groups = [dist.new_group([0, 1]) for _ in range(4)]
        for group in groups:
            dist.barrier(group)
        backends = [group._get_backend(torch.device("cpu")) for group in groups]
        dist.barrier()
        dist.destroy_process_group()
        del groups, group
        threading.Thread(target=backends.clear).start()
    """))


def test_works_outlive_their_group(run_script):
    quiet(run_script("""
        join(rank, size, folder)
        work = dist.all_reduce(torch.ones(3), async_op=True)
        future = work.get_future()
        dist.destroy_process_group()
        work.wait()
        assert future.wait()[0].eq(2).all()
    """))


def test_groups_come_and_go(run_script):
    quiet(run_script("""
        join(rank, size, folder)
        for i in range(20):
            group = dist.new_group([0, 1])
            x = torch.ones(3)
            dist.all_reduce(x, group=group)
            assert x.eq(2).all()
            if i % 2:
                dist.destroy_process_group(group)
        threads = len(os.listdir("/proc/self/task"))
        assert threads < 12, threads
        dist.destroy_process_group()
    """))


MAIN = """
def main(rank, folder):
    join(rank, 2, folder)
    x = torch.ones(3)
    dist.all_reduce(x)
    assert x.eq(2).all()
    dist.destroy_process_group()
import torch.multiprocessing as mp
"""


def test_start_by_fork(run_script):
    quiet(run_script(MAIN + 'mp.start_processes(main, (folder,), nprocs=2, start_method="fork")', size=1))


def test_start_by_new_interpreters(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(HEADER + MAIN + textwrap.dedent("""
        if __name__ == "__main__":
            mp.set_forkserver_preload(["anyccl.torch"])
            for method in "spawn", "forkserver":
                os.mkdir(method)
                mp.start_processes(main, (method,), nprocs=2, start_method=method)
    """))
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=90)
    assert done.returncode == 0, done.stdout + done.stderr
    quiet(done.stdout + done.stderr)


def python(code, **environment):
    """Runs it in a new interpreter: what an import does can be seen only there."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60,
                          env={**os.environ, **environment})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


class TestAutoload:
    """As installed: the build, too, has an entry point for torch."""

    SHOW = "; import torch.distributed as d; print('anyccl' in d.Backend.backend_list)"

    def test_torch_first(self):
        assert python("import torch" + self.SHOW) == "True"

    def test_anyccl_first(self):
        assert python("import anyccl.torch, torch" + self.SHOW) == "True"

    @pytest.mark.parametrize("variable", ["ANYCCL_TORCH_AUTOLOAD", "TORCH_DEVICE_BACKEND_AUTOLOAD"])
    def test_switched_off(self, variable):
        show = self.SHOW + "; import anyccl.torch; print('anyccl' in d.Backend.backend_list)"
        assert python("import torch" + show, **{variable: "0"}).split() == ["False", "True"]

    def test_another_minor_version_of_torch_is_refused_by_name(self):
        said = python("import torch; torch.__version__ = '2.99.0'\ntry:\n  import anyccl.torch\nexcept ImportError as e: print(e)",
                      TORCH_DEVICE_BACKEND_AUTOLOAD="0")
        assert "was built for torch 2." in said and "this is torch 2.99.0" in said
