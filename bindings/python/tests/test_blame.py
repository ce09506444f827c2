"""`anyccl blame` on a hang that only Python has: a thread of a rank that keeps the interpreter's lock."""

import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

TOOL = os.environ["TEST_TOOL"]
TABLE = Path(__file__).parents[3] / "docs/observe/blame.md"

PROGRAM = """
    import anyccl, ctypes, numpy as np, os, sys, threading

    pipe = os.open(sys.argv[1], os.O_RDWR)
    comm = anyccl.Communicator.from_env()
    comm.barrier()
    if comm.rank < 2:
        comm.timeout = 0.5
        try:
            comm.all_reduce(np.ones(2))
        except anyccl.Error:
            os.write(pipe, b"x")
        os._exit(0)

    read, byte = ctypes.PyDLL(None).read, ctypes.create_string_buffer(1)  # a call that keeps the lock

    def hold():
        for _ in range(2):  # until the others are through
            read(pipe, byte, 1)
        os._exit(0)

    sys.setswitchinterval(1000)  # the thread that starts has the lock until it waits in C
    threading.Thread(target=hold).start()
    comm.all_reduce(np.ones(2))
"""


def listed(name):
    """Kind and ranks that the documentation says for this hang."""
    row = re.search(rf"^\| `{name}` \|.*\| `(\w+)` \| ([\d, ]+) \|$", TABLE.read_text(), re.MULTILINE)
    return row[1], [int(rank) for rank in row[2].split(",")]


def test_held_gil(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    dumps = tmp_path / "dumps"
    dumps.mkdir()
    command = [TOOL, "run", "-n", "3", "--", sys.executable, "-B", "-c", textwrap.dedent(PROGRAM), tmp_path / "pipe"]
    environment = {**os.environ, "ANYCCL_DUMP_DIR": str(dumps), "ANYCCL_DEBUG": "NONE"}
    subprocess.run(command, env=environment, timeout=60, check=True)
    blame = subprocess.run([TOOL, "blame", "--json", dumps], capture_output=True, text=True, timeout=60, check=True)
    verdict = json.loads(blame.stdout)
    assert (verdict["kind"], verdict["ranks"]) == listed("held_gil"), verdict["text"]
