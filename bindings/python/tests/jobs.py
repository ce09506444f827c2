"""Jobs of `anyccl run`, whose ranks run a text."""

import os
import subprocess
import sys
import textwrap

TOOL = os.environ["TEST_TOOL"]


def run(ranks, program, *options):
    program = "import anyccl, numpy as np, os, sys\n" + textwrap.dedent(program)
    command = [TOOL, "run", "-n", str(ranks), *options, "--", sys.executable, "-B", "-c", program]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def lines(done):
    """What the ranks printed, in the order of ranks; fails unless all ended well and said nothing else."""
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return sorted(done.stdout.splitlines())
