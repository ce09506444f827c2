"""Ranks as threads of one process."""

import threading
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

import pytest

import anyccl


class Ranks:
    """All ranks of one communicator; `each` calls a function for every one of them, at the same time."""

    def __init__(self, size):
        self.comms = anyccl.Communicator.init_all(size)
        self._pool = ThreadPoolExecutor(size)

    def each(self, function):
        futures = [self._pool.submit(function, comm) for comm in self.comms]
        wait(futures, return_when=FIRST_EXCEPTION)
        _, stuck = wait(futures, timeout=10)  # after an error of one rank the others may wait for it
        if stuck:
            self.abort()
        return [future.result() for future in futures]

    def abort(self):
        for comm in self.comms:
            comm.abort()

    def close(self):
        self.abort()
        self._pool.shutdown()


@pytest.fixture(scope="module")
def four():
    ranks = Ranks(4)
    yield ranks
    ranks.close()


@pytest.fixture
def two():
    """Two ranks that nobody else uses: a test may make them fail."""
    ranks = Ranks(2)
    yield ranks
    ranks.close()


@pytest.fixture
def alone():
    with anyccl.Communicator.init_all(1)[0] as comm:
        yield comm


@pytest.fixture
def in_thread():
    """Starts a function in a thread, which is joined at the end of the test."""
    threads = []

    def start(function):
        threads.append(threading.Thread(target=function))
        threads[-1].start()

    yield start
    for thread in threads:
        thread.join()
