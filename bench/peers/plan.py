"""The plan of measurement: operations, settings, sizes, and their order."""
from typing import NamedTuple

KIB, MIB = 1 << 10, 1 << 20
OPS = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all", "send_recv", "barrier")
RANKS = (2, 4, 8)


class Range(NamedTuple):
    """Sizes that one start of `anyccl perf` measures: first, first * factor, ... last."""
    first: int
    last: int
    factor: int
    calls: int

    def sizes(self):
        size = self.first
        while size < self.last:
            yield size
            size *= self.factor
        yield self.last

    def at_least(self, smallest):
        """The rest of it without smaller sizes, or None."""
        sizes = [size for size in self.sizes() if size >= smallest]
        return self._replace(first=sizes[0]) if sizes else None


class Batch(NamedTuple):
    """Sizes that a library measures before the next library's turn."""
    name: str
    ranges: tuple

    def sizes(self):
        return [size for part in self.ranges for size in part.sizes()]

    def calls(self):
        return max(part.calls for part in self.ranges)


class Turn(NamedTuple):
    """One operation, setting and batch, which all libraries measure one after the other."""
    transport: str
    op: str
    ranks: int
    batch: Batch
    offset: int = 0  # of all buffers, in bytes from the beginning of a page

    def key(self):
        return f"{self.transport} {self.op} {self.ranks} {self.batch.name}"


FULL = (Batch("small", (Range(8, 64, 8, 10000), Range(256, 4 * KIB, 4, 10000))),
        Batch("middle", (Range(16 * KIB, 64 * KIB, 4, 2000), Range(256 * KIB, MIB, 4, 300))),
        Batch("large", (Range(4 * MIB, 16 * MIB, 4, 20), Range(64 * MIB, 64 * MIB, 2, 8))))
QUICK = (Batch("small", (Range(8, 4 * KIB, 8, 5000),)),
         Batch("large", (Range(64 * KIB, MIB, 16, 300), Range(16 * MIB, 16 * MIB, 2, 10))))
SAMPLE = (Batch("sample", (Range(8, 4 * KIB, 512, 2000), Range(64 * KIB, MIB, 16, 200),
                           Range(16 * MIB, 16 * MIB, 2, 8))),)
NO_DATA = (Batch("none", (Range(0, 0, 2, 5000),)),)


def batches(op, usual):
    return NO_DATA if op == "barrier" else usual


def full_round(ops, ranks):
    """The whole gate: all operations inside a host, and all_reduce over TCP."""
    turns = [Turn("shm", op, n, batch) for op in ops for n in ranks for batch in batches(op, FULL)]
    if "all_reduce" in ops and 2 in ranks:
        turns += [Turn("tcp", "all_reduce", 2, batch) for batch in FULL]
    return turns


def quick_round(ops, ranks):
    """All_reduce, and a sample of the others, the most telling first."""
    turns = []
    if "all_reduce" in ops:
        turns += [Turn("shm", "all_reduce", n, batch) for n in ranks for batch in QUICK]
        turns += [Turn("tcp", "all_reduce", 2, batch) for batch in QUICK if 2 in ranks]
    others = [op for op in ops if op != "all_reduce"]
    return turns + [Turn("shm", op, n, batch) for n in ranks if n < 8 for op in others for batch in batches(op, SAMPLE)]
