"""An algorithm as execution traces of Chakra (MLCommons), which ASTRA-sim replays.

    anyccl export all_reduce/ring -n 16 --goal -b 1M | python -m anyccl.chakra - -o ring

writes ring.0.et to ring.15.et, one file for each rank: what it sends, receives and computes, and what must be done
before. It reads any GOAL that says nothing but that. Needs the package protobuf: `pip install anyccl[chakra]`.
"""

from __future__ import annotations

import argparse
import functools
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Error", "read", "write"]

VERSION = "0.0.4"  # of the schema, as Chakra's own tools write it
COMP_NODE, COMM_SEND_NODE, COMM_RECV_NODE = 4, 5, 6

# What is written of MLCommons' schema/protobuf/et_def.proto: of each message its fields, their numbers and types.
# A library that knows the types makes the rest of it, so that no version of protobuf's generator is asked for.
_PACKAGE = "ChakraProtoMsg"
_SCHEMA = {
    "AttributeProto": [
        ("name", 1, "string"),
        ("int32_val", 7, "int32", "value"),
        ("int64_val", 9, "int64", "value"),
        ("uint64_val", 13, "uint64", "value"),
        ("bool_val", 27, "bool", "value"),
    ],
    "GlobalMetadata": [("version", 1, "string"), ("attr", 2, "AttributeProto*")],
    "Node": [
        ("id", 1, "uint64"),
        ("name", 2, "string"),
        ("type", 3, "int32"),  # an enumeration of the schema, which has the form of an int32
        ("ctrl_deps", 4, "uint64*"),
        ("data_deps", 5, "uint64*"),
        ("start_time_micros", 6, "uint64"),
        ("duration_micros", 7, "uint64"),
        ("attr", 10, "AttributeProto*"),
    ],
}


class Error(ValueError):
    """A text that is no GOAL, or says what a trace of Chakra cannot."""


@dataclass
class _Task:
    """A line of GOAL: a message, or a calculation of ``amount`` ns."""

    kind: str
    amount: int
    peer: int = -1
    tag: int = 0
    after: list[int] = field(default_factory=list)


_TASK = re.compile(
    r"(?:(?P<label>\w+):\s*)?(?:(?P<kind>send|recv)\s+(?P<bytes>\d+)b\s+(?:to|from)\s+(?P<peer>\d+)"
    r"(?:\s+tag\s+(?P<tag>\d+))?|calc\s+(?P<ns>\d+))(?:\s+(?:cpu|nic)\s+\d+)*"
)
_REQUIRES = re.compile(r"(\w+)\s+requires\s+(\w+)")
_RANKS = re.compile(r"num_ranks\s+(\d+)")
_BEGIN = re.compile(r"rank\s+(\d+)\s*\{")
_LARGEST_TAG, _LARGEST = (1 << 31) - 1, (1 << 63) - 1
_MOST_TEXT = 1 << 30
_MOST_RANKS = 1 << 20


class _Goal:
    """The tasks of each rank of a GOAL text."""

    def __init__(self, text: str) -> None:
        self.ranks: list[list[_Task]] = []
        self.rank: int | None = None
        self.begun: set[int] = set()
        self.line = 0
        self.labels: dict[str, int] = {}
        for number, line in enumerate(text.splitlines(), 1):
            self.line = number
            if line.strip():
                self._take(line.strip())
        if self.rank is not None or not self.ranks:
            raise self.error("the text ends here" if self.ranks else "there is no num_ranks")
        if len(self.begun) < len(self.ranks):
            missing = next(r for r in range(len(self.ranks)) if r not in self.begun)
            raise self.error(f"rank {missing} of {len(self.ranks)} has no block")

    def error(self, reason: str) -> Error:
        return Error(f"GOAL line {self.line}: {reason}")

    def _take(self, line: str) -> None:
        if self.rank is not None:
            self._take_of_rank(self.ranks[self.rank], line)
        elif (found := _RANKS.fullmatch(line)) and int(found[1]) <= _MOST_RANKS:
            self.ranks = [[] for _ in range(int(found[1]))]
        elif (found := _BEGIN.fullmatch(line)) and int(found[1]) < len(self.ranks):
            self.rank, self.labels = int(found[1]), {}
            self.begun.add(self.rank)
        else:
            raise self.error(f"{line!r} is neither num_ranks, up to {_MOST_RANKS}, nor the begin of one of the ranks")

    def _take_of_rank(self, tasks: list[_Task], line: str) -> None:
        if line == "}":
            self.rank = None
        elif found := _REQUIRES.fullmatch(line):
            tasks[self._labelled(found[1])].after.append(self._labelled(found[2]))
        elif found := _TASK.fullmatch(line):
            if found["label"]:
                self.labels[found["label"]] = len(tasks)
            tasks.append(self._task(found))
        else:
            raise self.error(f"{line!r} is none of send, recv, calc, requires")

    def _labelled(self, label: str) -> int:
        if label not in self.labels:
            raise self.error(f"there is no {label} above")
        return self.labels[label]

    def _task(self, found: re.Match[str]) -> _Task:
        if int(found["ns"] or found["bytes"]) > _LARGEST:
            raise self.error(f"{found['ns'] or found['bytes']} is too large")
        if found["ns"]:
            return _Task("calc", int(found["ns"]))
        peer, tag = int(found["peer"]), int(found["tag"] or 0)
        if peer >= len(self.ranks) or tag > _LARGEST_TAG:
            raise self.error(f"there is no rank {peer}" if peer >= len(self.ranks) else f"tag {tag} is too large")
        return _Task(found["kind"], int(found["bytes"]), peer, tag)


@functools.lru_cache(maxsize=None)
def _messages() -> dict[str, Any]:
    """The classes of the schema's messages."""
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    except ImportError:
        raise Error("the package protobuf is missing: pip install anyccl[chakra]") from None
    Field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="et_def.proto", package=_PACKAGE, syntax="proto3")
    for name, fields in _SCHEMA.items():
        message = file.message_type.add(name=name)
        for field_name, number, kind, *alternative in fields:
            one = message.field.add(name=field_name, number=number, label=Field.LABEL_OPTIONAL)
            if kind.endswith("*"):
                one.label = Field.LABEL_REPEATED
            if kind.rstrip("*") in _SCHEMA:
                one.type, one.type_name = Field.TYPE_MESSAGE, f".{_PACKAGE}.{kind.rstrip('*')}"
            else:
                one.type = getattr(Field, f"TYPE_{kind.rstrip('*').upper()}")
            if alternative:
                if not message.oneof_decl:
                    message.oneof_decl.add(name=alternative[0])
                one.oneof_index = 0
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")) for name in _SCHEMA}


def _attribute(name: str, kind: str, value: int) -> Any:
    return _messages()["AttributeProto"](name=name, **{f"{kind}_val": value})


def _node(rank: int, number: int, task: _Task) -> Any:
    node = _messages()["Node"](id=number, data_deps=task.after)
    if task.kind == "calc":
        # Of the host's CPU, and so replayed by its time. Chakra counts µs, which are coarse for it.
        node.name, node.type, node.duration_micros = "calc", COMP_NODE, round(task.amount / 1000)
        node.attr.append(_attribute("is_cpu_op", "bool", True))
        node.attr.append(_attribute("duration_ns", "uint64", task.amount))
        return node
    sends = task.kind == "send"
    node.name = f"send to {task.peer}" if sends else f"recv from {task.peer}"
    node.type = COMM_SEND_NODE if sends else COMM_RECV_NODE
    node.attr.append(_attribute("is_cpu_op", "bool", False))
    node.attr.append(_attribute("comm_size", "int64", task.amount))
    node.attr.append(_attribute("comm_src", "int32", rank if sends else task.peer))
    node.attr.append(_attribute("comm_dst", "int32", task.peer if sends else rank))
    node.attr.append(_attribute("comm_tag", "int32", task.tag))
    return node


def write(goal: str, prefix: str | os.PathLike[str]) -> list[str]:
    """Writes PREFIX.RANK.et for each rank of a GOAL text, and returns their paths."""
    messages = _messages()
    from google.protobuf import proto

    paths = []
    for rank, tasks in enumerate(_Goal(goal).ranks):
        paths.append(f"{os.fspath(prefix)}.{rank}.et")
        with open(paths[-1], "wb") as file:
            proto.serialize_length_prefixed(messages["GlobalMetadata"](version=VERSION), file)
            for number, task in enumerate(tasks):
                proto.serialize_length_prefixed(_node(rank, number, task), file)
    return paths


def read(path: str | os.PathLike[str]) -> Iterator[Any]:
    """The nodes of a trace, as protobuf's messages."""
    messages = _messages()
    from google.protobuf import proto

    with open(path, "rb") as file:
        proto.parse_length_prefixed(messages["GlobalMetadata"], file)
        while (node := proto.parse_length_prefixed(messages["Node"], file)) is not None:
            yield node


def _main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m anyccl.chakra", description="Writes what anyccl export --goal prints as traces of Chakra."
    )
    parser.add_argument("file", help="the text in GOAL, of one size; -: standard input")
    parser.add_argument("-o", "--output", required=True, help="the traces are OUTPUT.0.et, OUTPUT.1.et, ...")
    flags = parser.parse_args()
    try:
        with open(0 if flags.file == "-" else flags.file, encoding="utf-8") as file:
            goal = file.read(_MOST_TEXT + 1)
        if len(goal) > _MOST_TEXT:
            raise Error(f"{flags.file} has more than {_MOST_TEXT} characters")
        paths = write(goal, flags.output)
    except (Error, OSError, UnicodeDecodeError) as problem:
        print(f"anyccl.chakra: {problem}", file=sys.stderr)
        return 1
    print(f"{paths[0]} to {paths[-1]}: {len(paths)} ranks")
    return 0


if __name__ == "__main__":
    sys.exit(_main())
