"""Runs the distributed test suite that is inside the torch wheel against a CPU backend.

    WORLD_SIZE=3 python suite.py --backend anyccl --as gloo --json results.json [name...]

Much of the suite is chosen by the backend's name: `--as gloo` runs what is meant for Gloo, `--as mpi` what is meant
for MPI (all_to_all). The tests themselves run with `--backend`. Each test runs on WORLD_SIZE forked processes; the
exit codes by which they say that they skipped count as skipped. Writes {test: [outcome, reason]}, outcome being pass,
skip or fail. ANYCCL_TORCH_AS_GLOO=1 with `--backend gloo` tests anyccl under Gloo's name.
"""

import argparse
import datetime
import gc
import json
import os
import sys
import tempfile
import time
import unittest

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--backend", default="anyccl")
parser.add_argument("--as", dest="name", choices=["gloo", "mpi"], default="gloo")
parser.add_argument("--json", help="where the outcomes go")
parser.add_argument("--list", metavar="PART", help="only print the names of the tests that have this in them")
parser.add_argument("--every", type=int, default=1, metavar="N", help="run only one test in N, in the order of names")
parser.add_argument("names", nargs="*", help="tests to run (default: all)")
arguments = parser.parse_args()

os.environ.setdefault("WORLD_SIZE", "3")
# Read when the suite is imported, by its decorators:
os.environ["BACKEND"] = arguments.name
os.environ["INIT_METHOD"] = "file://" + os.path.join(tempfile.mkdtemp(), "store")

import torch.distributed as dist  # noqa: E402
import torch.multiprocessing as multiprocessing  # noqa: E402
import torch.testing._internal.common_distributed as common  # noqa: E402

if arguments.backend == "anyccl":
    import anyccl.torch  # noqa: F401

for feature in ("gpu", "cuda", "ddp", "subgroup", "plugin"):
    common.DistTestCases.backend_feature.setdefault(feature, set()).add(arguments.backend)
common.skip_if_small_worldsize = lambda test: test  # eight ranks, but for MPI: they pass on three

from torch.testing._internal.distributed import distributed_test as suite  # noqa: E402



class Name(str):
    """The backend's name. The bodies of some tests ask what it is: then it is also the one that the suite was told."""

    def __eq__(self, other):
        return str(self) == other or arguments.name == other

    __hash__ = str.__hash__


suite.BACKEND = Name(arguments.backend)
for supported in ("PROFILING_SUPPORTED_BACKENDS", "SEND_RECV_PROFILING_SUPPORTED_BACKENDS"):
    getattr(suite, supported).append(arguments.backend)


def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
    """As torch.distributed's, which refuses every backend but Gloo by name."""
    group = group or dist.group.WORLD
    if group is dist.GroupMember.NON_GROUP_MEMBER:
        return None
    if isinstance(timeout, float):
        timeout = datetime.timedelta(seconds=timeout)
    return group.monitored_barrier(timeout or datetime.timedelta(minutes=5), wait_all_ranks=wait_all_ranks)


if arguments.backend != "gloo":
    dist.monitored_barrier = monitored_barrier
sleep = time.sleep
time.sleep = lambda seconds: sleep(0.01 if seconds == 0.1 else seconds)  # 0.1 s is how often the suite looks whether all are there
RUNS_ON = "anyccl" if os.environ.get("ANYCCL_TORCH_AS_GLOO") else arguments.backend


class Suite(suite.TestDistBackend, suite.DistributedTest._DistTestBase):
    def setUp(self):
        super().setUp()
        self._start_processes(multiprocessing.get_context("fork").Process)

    def run_test(self, test_name, parent_pipe):
        backend = dist.group.WORLD._get_backend(suite.torch.device("cpu"))
        if backend.name() != RUNS_ON:
            raise AssertionError(f"this runs on {backend.name()}")
        super().run_test(test_name, parent_pipe)


class Outcomes(unittest.TextTestResult):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.outcomes = {}

    def note(self, test, outcome, reason=""):
        name = test.id().rsplit(".", 1)[-1]
        self.outcomes[name] = (outcome, reason.strip())

    def addSuccess(self, test):
        super().addSuccess(test)
        self.note(test, "pass")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.note(test, "skip", reason)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.note(test, "fail")

    def addError(self, test, err):
        super().addError(test, err)
        self.note(test, "fail")


def main():
    loader = unittest.TestLoader()
    tests = loader.loadTestsFromTestCase(Suite)
    if arguments.list:
        print(*(name for name in loader.getTestCaseNames(Suite) if arguments.list in name))
        return 0
    if arguments.names:
        tests = unittest.TestSuite(test for test in tests if test.id().rsplit(".", 1)[-1] in arguments.names)
    tests = unittest.TestSuite(list(tests)[::arguments.every])
    gc.freeze()  # else processes that collect garbage copy the pages of all Python objects
    result = unittest.TextTestRunner(resultclass=Outcomes, verbosity=2, stream=sys.stdout).run(tests)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(result.outcomes, file, indent=1, sort_keys=True)
    return 0 if result.wasSuccessful() and result.testsRun else 1


if __name__ == "__main__":
    sys.exit(main())
