"""The limits of this machine: measured by limits.cpp, and the shortest time of an operation that follows."""
import os

from plan import FULL
from process import call, compile_with


FAR = 1.5  # times the usual time of a line: one of the cores has moved away from the other


def line_us(folder):
    """The time of a cache line from one core to another now; 0 with one core. In a virtual machine it changes: the host
    moves cores, for seconds or minutes, and then all that goes between them takes two or three times as long."""
    lines = call([folder / "limits"]).split()
    return float(lines[2]) if lines else 0


def measure(folder):
    """{"cores": n, "line_us": one way, "copy_GBps": [[bytes, of all cores together], ...]}"""
    program = folder / "limits"
    compile_with([os.environ.get("CXX", "g++")], "limits.cpp", program, "-pthread")
    sizes = [size for batch in FULL for size in batch.sizes() if size >= 4096]
    found = {"cores": len(os.sched_getaffinity(0)), "line_us": None, "copy_GBps": []}
    for line in call([program, *sizes]).splitlines():
        what, size, value = line.split("\t")
        if what == "line":
            found["line_us"] = float(value)
        else:
            found["copy_GBps"].append([int(size), float(value)])
    return found


def traffic(op, ranks, size):
    """Bytes that all ranks together must copy, half of those they must read and write. A rank that sums reads all
    inputs once; memory that several ranks need is written once by each of them."""
    read_and_written = {
        "all_reduce": ranks * (size + size / ranks) + 2 * (ranks - 1) * size,  # sum a part each, take the others'
        "reduce_scatter": ranks * (size + size / ranks),
        "reduce": (ranks + 1) * size,
        "broadcast": 2 * (ranks - 1) * size,
    }.get(op, 2 * ranks * size)
    return read_and_written / 2


def passed_share(op):
    """The part of its bytes that each of two ranks gets from the other, at least."""
    return 0.5 if op in ("all_gather", "reduce_scatter", "all_to_all") else 1


def memory_us(limits, op, ranks, size):
    """The time to copy that if nothing else is done; None below the smallest measured size."""
    rates = [rate for measured, rate in limits["copy_GBps"] if measured <= size]
    return traffic(op, ranks, size) / rates[-1] / 1e3 if rates else None


def floor_us(limits, op, ranks, size):
    """No call is shorter: its copies, and at least one cache line on its way."""
    return max(limits["line_us"] or 0, memory_us(limits, op, ranks, size) or 0)


def bus_factor(op, ranks):
    """As in nccl-tests: bus bandwidth is bytes / time * factor."""
    if op == "all_reduce":
        return 2 * (ranks - 1) / ranks
    return (ranks - 1) / ranks if op in ("all_gather", "reduce_scatter", "all_to_all") else 1
