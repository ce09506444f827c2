"""Programs end as they should, however they begin and whatever is still under way."""

import os
import subprocess
import sys
import tempfile
import textwrap
import time

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


def run_script(body, size=2, expected=0):
    """Runs HEADER in a new process, which forks a rank for each run of `body` (names: rank, size, folder).

    Returns all output. Each rank ends as programs do, by the end of its main module.
    """
    fork = """
size, folder = int(sys.argv[1]), sys.argv[2]
children = []
for rank in range(size):
    children.append(os.fork())
    if children[-1] == 0:
        break
else:
    sys.exit(str([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]))
"""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([sys.executable, "-c", HEADER + fork + textwrap.dedent(body), str(size), folder],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=90)
    codes = done.stdout.splitlines()[-1]
    assert codes == str([expected] * size), done.stdout
    return done.stdout


def quiet(output):
    """Nothing that looks like a crash; torch itself warns about a missing destroy_process_group."""
    for word in ("terminate", "FATAL", "Fatal", "Segmentation", "Traceback", "abort"):
        assert word not in output, output


def test_without_destroying_the_group_and_with_pending_works():
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


def test_an_exception_ends_all_ranks():
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


def test_while_a_callback_is_running():
    output = run_script("""
        join(rank, size, folder)
        def long(future):
            for _ in range(400):
                time.sleep(0.01)
            print("it ended")
        future = dist.all_reduce(torch.ones(3), async_op=True).get_future().then(long)
        dist.barrier()
    """)
    quiet(output)
    assert output.count("it ended") == 2


def test_while_the_last_reference_goes_in_another_thread():
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


def test_works_outlive_their_group():
    quiet(run_script("""
        join(rank, size, folder)
        work = dist.all_reduce(torch.ones(3), async_op=True)
        future = work.get_future()
        dist.destroy_process_group()
        work.wait()
        assert future.wait()[0].eq(2).all()
    """))


def test_groups_come_and_go():
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


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_start_methods(method):
    with tempfile.TemporaryDirectory() as folder:
        script = os.path.join(folder, "script.py")
        with open(script, "w") as file:
            file.write(HEADER + textwrap.dedent("""
                def main(rank, folder):
                    join(rank, 2, folder)
                    x = torch.ones(3)
                    dist.all_reduce(x)
                    assert x.eq(2).all()
                    dist.destroy_process_group()
                if __name__ == "__main__":
                    import torch.multiprocessing as mp
                    mp.start_processes(main, (sys.argv[2],), nprocs=2, start_method=sys.argv[1])
            """))
        done = subprocess.run([sys.executable, script, method, folder], capture_output=True, text=True, timeout=90)
        assert done.returncode == 0, done.stdout + done.stderr
        quiet(done.stdout + done.stderr)


def python(code, **environment):
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
