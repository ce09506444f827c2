"""Traces as ranks write them with ANYCCL_TRACE, for what the page shows of them."""

import json
from pathlib import Path


def write_trace(folder, rank, calls, size=2, host="h"):
    """Of each call its kind, sequence, begin and end in us, and more; end 0: it had not ended."""
    events = []
    for kind, sequence, begin, end, more in calls:
        args = {"kind": kind, "bytes": 1 << 20, "sequence": sequence, "issued_ns": 1000 * begin, "started_ns": 1000 * begin, **more}
        events.append({"name": kind, "ph": "X", "pid": 7, "tid": 1, "ts": begin, "args": {**args, **({"ended_ns": 1000 * end} if end else {})}})
    about = {"anyccl_trace": 1, "communicator": "c0ffee", "name": "", "host": host, "pid": 40 + rank, "rank": rank, "size": size,
             "time_ns": 1_900_000, "real_offset_ns": 0, "left_out": 3 if rank else 0}
    Path(folder, f"trace-c0ffee-{rank}.json").write_text(json.dumps({"otherData": about, "traceEvents": events}))


def write_job(folder, hosts):
    """Of a rank on each of the hosts: a Broadcast from rank 0, another one from rank 2, and an AllReduce of two levels."""
    tree, levels = {"algorithm": "broadcast/binomial"}, {"algorithm": "all_reduce/two_level"}
    calls = [("broadcast", 1, 1000, 1010, {**tree, "root": 0}), ("broadcast", 2, 1100, 1110, {**tree, "root": 2}), ("all_reduce", 3, 1200, 1210, levels)]
    for rank, host in enumerate(hosts):
        write_trace(folder, rank, calls, len(hosts), host)
