"""The launcher of these tests says which rank has failed, and how."""

import subprocess
import sys
from pathlib import Path

# The cases have one interpreter, which imports torch once.
CASES = """
import os, sys
sys.path.insert(0, sys.argv[1])
import fork_ranks
for case in sys.argv[2:]:
    if "hang" in case:
        fork_ranks.TIME_LIMIT_S = 2
    child = os.fork()
    if child == 0:
        os.dup2(os.open(case + ".log", os.O_CREAT | os.O_WRONLY), 2)
        sys.argv = ["fork_ranks.py", "3", case, "argument"]
        sys.exit(fork_ranks.main())
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)  # a fork copies what is not written
"""
PROGRAMS = {
    "right.py": "assert __file__ == sys.argv[0] and sys.argv[1:] == ['argument'] and __name__ == '__main__'\n"
                "assert os.environ['WORLD_SIZE'] == '3'; sys.exit(0)",
    "wrong.py": "assert rank != 1, 'planted'",
    "status.py": "sys.exit(3 * (rank == 2))",
    "killed.py": "os.kill(os.getpid(), 9 * (rank == 0))",
    "at_exit.py": "import atexit; atexit.register(lambda: os._exit(4 * (rank == 1)))",
    "hang.py": "import time; time.sleep(1000 * (rank == 1))",
}
FAILURES = {
    "wrong.py": ("rank 1:\nTraceback", "AssertionError: planted", "rank 1 ended with exit status 1"),
    "status.py": ("rank 2 ended with exit status 3",),
    "killed.py": ("rank 0 ended with signal 9",),
    "at_exit.py": ("rank 1 ended with exit status 4",),
    "hang.py": ("hang.py\", line 2", "rank 1 was not done after 2 s"),
}


def test_failures_are_reported(tmp_path):
    for name, text in PROGRAMS.items():
        (tmp_path / name).write_text(f"import os, sys; rank = int(os.environ['RANK'])\n{text}\n")
    done = subprocess.run([sys.executable, "-c", CASES, Path(__file__).parent, *PROGRAMS], cwd=tmp_path,
                          stdout=subprocess.PIPE, text=True)
    assert done.stdout.split() == ["0"] + ["1"] * len(FAILURES)
    for name, words in FAILURES.items():
        said = (tmp_path / (name + ".log")).read_text()
        assert all(word in said for word in words), said
