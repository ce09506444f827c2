"""What competes with the measured processes for the cores: other programs, their own threads, or a quota.

Each neighbour is a context manager. The measured processes are started inside of it, with `environment` set, and
`adopt(pids)` is called once they run."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

LOOP = "while True: pass"
V1, V2 = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")
PERIOD_US = 100_000  # the default of containers


class Unavailable(Exception):
    """This machine cannot give such a neighbour; says why."""


class Nobody(contextlib.AbstractContextManager):
    environment = {"OMP_NUM_THREADS": "1"}

    def adopt(self, pids):
        pass

    def __exit__(self, *_):
        pass


class Loops(Nobody):
    """Processes that compute, in the session of the measured ones or each in its own, as other jobs are."""

    def __init__(self, count, own_session=False):
        self.count, self.own_session = count, own_session

    def __enter__(self):
        self.processes = [
            subprocess.Popen([sys.executable, "-c", LOOP], start_new_session=self.own_session) for _ in range(self.count)
        ]
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()


class Team(Nobody):
    """The threads of each measured process itself: it computes between calls on as many as torch takes by default."""

    environment = {}


class Quota(Nobody):
    """The measured processes may use `cores` cores together, as in a container."""

    def __init__(self, cores):
        self.quota = int(cores * PERIOD_US)

    def __enter__(self):
        name = f"anyccl-bench-{os.getpid()}"
        try:
            if (V1 / "cpu.cfs_quota_us").exists():
                self.group = V1 / name
                self.group.mkdir()
                (self.group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
                (self.group / "cpu.cfs_quota_us").write_text(str(self.quota))
            else:
                self.group = V2 / name
                self.group.mkdir()
                (self.group / "cpu.max").write_text(f"{self.quota} {PERIOD_US}")
        except OSError as error:
            raise Unavailable(f"no group of processes with a quota can be made here: {error}") from error
        return self

    def adopt(self, pids):
        for pid in pids:
            (self.group / "cgroup.procs").write_text(str(pid))

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self.group.rmdir()  # empty once its processes have ended


NEIGHBOURS = {
    "nobody": Nobody,
    "2 loops": lambda: Loops(2),
    "8 loops": lambda: Loops(8),
    "2 jobs": lambda: Loops(2, own_session=True),
    "own team": Team,
    "half a core": lambda: Quota(0.5),
    "one core": lambda: Quota(1),
    "1.5 cores": lambda: Quota(1.5),
}
