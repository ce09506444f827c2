"""What a rank remembers of its operations in the format of c10d's flight recorder, for torch's own analyser."""

import json
import os
import pickle
import tempfile

import torch.distributed as dist

from ._backend_of import backend_of

_VERSION = "2.10"  # of the format, as torch's recorder for NCCL writes it
_STATES = {"issued": "scheduled", "running": "started", "done": "completed"}
_TYPES = {"i8": "Char", "u8": "Byte", "i16": "Short", "i32": "Int", "i64": "Long", "f16": "Half", "bf16": "BFloat16",
          "f32": "Float", "f64": "Double", "b8": "Bool", "c64": "ComplexFloat", "c128": "ComplexDouble"}
# The analyser's name of a collective, and how many blocks of its count the input and the output have: 1, or one for
# each rank (None). Scans, which torch has not, are none.
_COLLECTIVES = {
    "all_reduce": ("all_reduce", 1, 1), "broadcast": ("broadcast", 1, 1), "reduce": ("reduce", 1, 1),
    "barrier": ("barrier", 1, 1), "all_gather": ("_all_gather_base", 1, None), "gather": ("gather", 1, None),
    "reduce_scatter": ("_reduce_scatter_base", None, 1), "scatter": ("scatter", None, 1),
    "all_to_all": ("all_to_all", None, None), "all_to_all_v": ("all_to_all", 1, 1),
    "all_gather_v": ("all_gather_v", 1, 1), "reduce_scatter_v": ("reduce_scatter_v", 1, 1),
    "gather_v": ("gather", 1, 1), "scatter_v": ("scatter", 1, 1),
}


def write_flight_record(prefix: str) -> str:
    """Writes what this rank remembers of its operations in all process groups of anyccl to the file PREFIX + RANK,
    and returns that name. `python -m torch.distributed.flight_recorder.fr_trace FOLDER` reads those of all ranks.

    Call it on every rank, also after a failure or while other threads wait in operations. The analyser knows no
    backend of this name, so operations are called "gloo:all_reduce"; there are no stacks. Of operations on blocks
    of different sizes the sizes are those of this rank's call alone, or 0 where the library does not keep them.

    Threads: any. Raises OSError, and DistBackendError once a group was aborted or shut down.
    """
    entries, config = [], {}
    for group, names in list(dist.distributed_c10d._world.pg_names.items()):
        dumped = _dump_of(group)
        if dumped is None:
            continue
        ranks = dist.get_process_group_ranks(group)
        config[names] = {"name": names, "desc": group.group_desc, "ranks": str(ranks)}
        entries += _entries_of(dumped, (names, group.group_desc), len(config) - 1)
    entries.sort(key=lambda entry: entry["time_created_ns"])
    for number, entry in enumerate(entries):
        entry["record_id"] = number
    record = {"version": _VERSION, "pg_config": config, "pg_status": {}, "entries": entries,
              "comm_lib_version": "anyccl", "host_name": os.uname().nodename}
    path = f"{prefix}{dist.get_rank()}"
    with open(path, "wb") as file:
        pickle.dump(record, file)
    return path


def _dump_of(group):
    """None: it is no group of anyccl on this rank."""
    backend = backend_of(group) if isinstance(group, dist.ProcessGroup) else None
    if backend is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "dump")
        backend._dump(path)
        with open(path, encoding="utf-8") as file:
            return json.load(file)


def _entries_of(dumped, group, group_id):
    offset, messages = dumped["real_offset_ns"], 0
    for call in dumped["entries"]:
        is_message = "sequence" not in call
        if call["kind"] not in _COLLECTIVES and call["kind"] not in ("send", "recv"):
            continue
        messages += is_message
        name, inputs, outputs = _shape_of(call, dumped["rank"], dumped["size"])
        kind = _TYPES.get(call["type"], call["type"])
        yield {
            "pg_id": group_id,
            "process_group": group,
            "collective_seq_id": call.get("sequence", 0),
            "p2p_seq_id": messages if is_message else 0,
            "op_id": call["number"],
            "profiling_name": f"gloo:{name}",
            "input_sizes": [inputs],
            "input_dtypes": [kind],
            "output_sizes": [outputs],
            "output_dtypes": [kind],
            "state": _STATES.get(call["state"], "started" if "started_ns" in call else "scheduled"),
            "time_created_ns": call["issued_ns"] + offset,
            "time_discovered_started_ns": call["started_ns"] + offset if "started_ns" in call else None,
            "time_discovered_completed_ns": call["ended_ns"] + offset if call["state"] == "done" else None,
            "retired": "ended_ns" in call,
            "timeout_ms": 0,
            "is_p2p": is_message,
            "frames": [],
        }


def _shape_of(call, rank, size):
    """Name, input and output sizes, as the analyser compares them."""
    count = call["count"]
    if "sequence" not in call:
        arrow = f"send {rank}->{call['peer']}" if call["kind"] == "send" else f"recv {rank}<-{call['peer']}"
        return arrow, [count], [count]
    name, inputs, outputs = _COLLECTIVES[call["kind"]]
    return name, [count * (inputs or size)], [count * (outputs or size)]
