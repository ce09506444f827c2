"""Runs a program on some ranks, as torchrun does, but torch is imported once: here, before the ranks are forked.

    python fork_ranks.py RANKS PROGRAM.py [ARGUMENT...]
    python fork_ranks.py RANKS -m MODULE [ARGUMENT...]

A rank ends as a process of its own would, through the end of its interpreter. When one fails, or time is up, that is
said with its rank, the others are killed, and the exit status is 1.
"""

import ast
import ctypes
import faulthandler
import gc
import importlib
import importlib.util
import os
import runpy
import signal
import sys
import time
import traceback

gc.disable()  # a fifth of the time of these imports would go there
import torch._dynamo  # noqa: E402,F401  optimizers and DDP import it
import torch.distributed as dist  # noqa: E402

TIME_LIMIT_S = 400
PR_SET_PDEATHSIG = 1


def import_in_advance(file):
    """What the program imports at its top."""
    with open(file, "rb") as source:
        for node in ast.parse(source.read()).body:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    importlib.import_module(alias.name)
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                importlib.import_module(node.module)


def fork():
    """As os.fork; the child has a process group of its own, and dies with its parent."""
    parent = os.getpid()
    child = os.fork()
    if child:
        os.setpgid(child, child)
        return child
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    return 0


def start_store():
    """Starts a process that has the store of the ranks, as torchrun's agent has it; returns it and its port."""
    reader, writer = os.pipe()
    child = fork()
    if child == 0:
        store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        os.write(writer, str(store.port).encode())
        os.close(writer)
        while True:
            signal.pause()
    os.close(writer)
    with os.fdopen(reader) as file:
        return child, file.read()


def become_rank(rank, ranks, port):
    faulthandler.enable()  # SIGABRT shows where it is
    sys.excepthook = lambda *error: sys.stderr.write(f"rank {rank}:\n{''.join(traceback.format_exception(*error))}")
    os.environ.update(
        RANK=str(rank), LOCAL_RANK=str(rank), GROUP_RANK="0", ROLE_RANK=str(rank), ROLE_NAME="default",
        WORLD_SIZE=str(ranks), LOCAL_WORLD_SIZE=str(ranks), GROUP_WORLD_SIZE="1", ROLE_WORLD_SIZE=str(ranks),
        MASTER_ADDR="127.0.0.1", MASTER_PORT=port, TORCHELASTIC_USE_AGENT_STORE="True",
        TORCHELASTIC_RESTART_COUNT="0", TORCHELASTIC_MAX_RESTARTS="0", TORCHELASTIC_RUN_ID="none")


def wait_for(names):
    """Until the ranks among these processes, {pid: name}, have ended or one has failed; returns what has failed."""
    end = time.monotonic() + TIME_LIMIT_S
    while len(names) > 1:  # the store stays
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        if ended is None and time.monotonic() < end:
            time.sleep(0.01)
        elif ended is None:
            late = [pid for pid, name in names.items() if name != "the store"]
            for pid in late:
                os.kill(pid, signal.SIGABRT)
                os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
            return [f"{names[pid]} was not done after {TIME_LIMIT_S} s" for pid in late]
        else:
            end_group(ended.si_pid)
            name = names.pop(ended.si_pid)
            if ended.si_status != 0 or name == "the store":
                how = "exit status" if ended.si_code == os.CLD_EXITED else "signal"
                return [f"{name} ended with {how} {ended.si_status}"]
    return []


def end_group(child):
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)


def main():
    ranks, is_module = int(sys.argv[1]), sys.argv[2] == "-m"
    program, *arguments = sys.argv[3 if is_module else 2:]
    sys.path[0] = os.getcwd() if is_module else os.path.dirname(os.path.abspath(program))
    file = importlib.util.find_spec(program).origin if is_module else program
    import_in_advance(file)
    assert len(os.listdir("/proc/self/task")) == 1, "an import has started threads, which a fork does not take along"
    gc.enable()
    gc.freeze()  # else every rank copies all pages with Python objects, at the latest when it ends

    store, port = start_store()
    names = {store: "the store"}
    for rank in range(ranks):
        child = fork()
        if child == 0:
            become_rank(rank, ranks, port)
            sys.argv = [file, *arguments]
            if is_module:
                runpy.run_module(program, run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(program, run_name="__main__")
            return 0
        names[child] = f"rank {rank}"
    failures = wait_for(names)
    for child in names:
        end_group(child)
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
