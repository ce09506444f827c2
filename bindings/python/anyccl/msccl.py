"""MSCCL's XML as an algorithm for anyccl: `python -m anyccl.msccl FILE.xml -o mine.json`.

Thread blocks become one order of steps for each rank, found by running them: a step is next when what it depends on
is done, its message has come, and no older message of the same sender waits. Channels, protocol and threads are
dropped. Whether the result is right, and the same on all ranks in every bit, `anyccl check --file` says.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import xml.etree.ElementTree as ElementTree
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from . import dsl

__all__ = ["Error", "read"]

_COLLECTIVES = {
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "alltoall": "all_to_all",
    "reduce_scatter": "reduce_scatter",
    "reducescatter": "reduce_scatter",
}
_RECEIVES = {"r", "rcs", "rrc", "rrcs", "rrs"}
_SENDS = {"s", "rcs", "rrcs", "rrs"}
_TYPES = _RECEIVES | _SENDS | {"cpy", "re", "nop"}
_MOST = 1 << 16  # of chunks, steps and whatever else is counted
_MOST_BYTES = 64 << 20
_MOST_RANKS = 1024
_COPIES = -1  # the number of the thread block that stands for <copy>


class Error(ValueError):
    """A file that is no algorithm of MSCCL, or cannot be one of anyccl."""


@dataclass
class _Step:
    type: str
    source: tuple[str, int]
    target: tuple[str, int]
    count: int
    waits_for: tuple[int, int] | None
    place: str


@dataclass
class _Block:
    """A thread block."""

    send: int
    recv: int
    channel: int
    steps: list[_Step] = field(default_factory=list)
    done: int = 0


@dataclass
class _Message:
    channel: int
    runs: list[list[int]]  # of each part that travels as one, the chunks of the collective's vector


def _number(element: ElementTree.Element, name: str, default: int | None = None, least: int = -1) -> int:
    text = element.get(name)
    if text is None and default is not None:
        return default
    try:
        number = int(text or "")
    except ValueError:
        number = least - 1
    if not least <= number <= _MOST:
        raise Error(f"<{element.tag}> has {name}={text!r} instead of a number from {least} to {_MOST}")
    return number


def _steps_in(gpu: int, at: int, element: ElementTree.Element) -> Iterator[_Step]:
    for number, step in enumerate(sorted(element.iter("step"), key=lambda one: _number(one, "s"))):
        kind = step.get("type", "")
        where = f"gpu {gpu} tb {at} step {number}"
        if kind not in _TYPES:
            raise Error(f"{where}: type {kind!r} is none of {', '.join(sorted(_TYPES))}")
        source = (step.get("srcbuf", "i"), _number(step, "srcoff", 0, least=0))
        target = (step.get("dstbuf", "o"), _number(step, "dstoff", 0, least=0))
        depends = _number(step, "depid", -1)
        waits_for = (depends, _number(step, "deps", -1)) if depends >= 0 else None
        yield _Step(kind, source, target, max(_number(step, "cnt", 1), 0 if kind == "nop" else 1), waits_for, where)


def _copies_in(gpu: int, element: ElementTree.Element) -> Iterator[_Step]:
    """What a GPU copies from its input to its output beside its thread blocks."""
    for copy in element.iter("copy"):
        source, target = ("i", _number(copy, "i_off", least=0)), ("o", _number(copy, "o_off", least=0))
        yield _Step("cpy", source, target, max(_number(copy, "cnt", 1), 1), None, f"gpu {gpu} copy")


class _Rank:
    """One GPU: where its chunks are in anyccl's memory, which does not write to its input."""

    def __init__(self, program: dsl.Program, rank: int, in_place: bool) -> None:
        self.program, self.steps = program, program.rank(rank)
        self.in_place = in_place
        self.blocks: dict[int, _Block] = {}
        self.cells: dict[tuple[str, int], dsl.Slice] = {}
        self.sent: set[tuple[str, int]] = set()  # as they are, so that peers may still read them
        for i in range(self.steps.input.chunks):
            self.cells[self.cell("i", i)] = dsl.Slice("input", i)
        self.first = dict(self.cells)

    def cell(self, buffer: str, at: int) -> tuple[str, int]:
        """The name of a cell of memory: in place, input and output are the larger of the two."""
        inputs, outputs = self.steps.input.chunks, self.steps.output.chunks
        if not self.in_place or buffer not in "io":
            return buffer, at
        if buffer == "i" and inputs < outputs or buffer == "o" and outputs < inputs:
            at += self.steps.rank * self.program.parts
        return "o", at

    def origin(self, cell: tuple[str, int]) -> int:
        return self.program.origin(self.steps.rank, self.slice_of(cell))

    def slice_of(self, cell: tuple[str, int]) -> dsl.Slice:
        if cell not in self.cells:
            raise Error(f"{self.program.place}: chunk {cell[1]} of {cell[0]} is read before it is written")
        return self.cells[cell]

    def cells_of(self, place: tuple[str, int], count: int) -> list[tuple[str, int]]:
        return [self.cell(place[0], place[1] + i) for i in range(count)]

    def runs(self, cells: list[tuple[str, int]]) -> list[dsl.Slice]:
        """The same in as few slices as possible."""
        runs: list[dsl.Slice] = []
        for one in map(self.slice_of, cells):
            last = runs[-1] if runs else None
            if last is not None and last.space == one.space and last.first + last.count == one.first:
                runs[-1] = dsl.Slice(last.space, last.first, last.count + 1)
            else:
                runs.append(one)
        return runs

    def write(self, cells: list[tuple[str, int]], origins: list[int]) -> list[dsl.Slice]:
        """Where such chunks are written from now on: the output, or fresh scratch memory."""
        for cell, origin in zip(cells, origins):
            self.cells[cell] = self._output_of(cell) or self.steps.scratch(origin)
            self.sent.discard(cell)
        return self.runs(cells)

    def _output_of(self, cell: tuple[str, int]) -> dsl.Slice | None:
        outputs = self.steps.output.chunks
        begin = 0
        if self.in_place and outputs < self.steps.input.chunks:
            begin = self.steps.rank * self.program.parts
        return dsl.Slice("output", cell[1] - begin) if cell[0] == "o" and 0 <= cell[1] - begin < outputs else None

    def finish(self) -> None:
        """Output that was input all the time is copied."""
        for cell, first in self.first.items():
            target = self._output_of(cell)
            if self.cells[cell] is first and target is not None:
                self.steps.copy(first, target)


def _move(runs: list[dsl.Slice], targets: list[dsl.Slice]) -> Iterator[tuple[dsl.Slice, dsl.Slice]]:
    """Pairs of slices of equal length."""
    one, other = [deque((s.space, s.first + i) for s in side for i in range(s.count)) for side in (runs, targets)]
    while one:
        (a, a_first), (b, b_first), count = one.popleft(), other.popleft(), 1
        while one and one[0] == (a, a_first + count) and other[0] == (b, b_first + count):
            one.popleft(), other.popleft()
            count += 1
        yield dsl.Slice(a, a_first, count), dsl.Slice(b, b_first, count)


class _Run:
    """All thread blocks, run until they have ended. ``window``: messages of a rank that may be under way.

    ``spare``: and how many more that it passes on, so that ranks which have sent all they may take from one another.
    """

    def __init__(self, algo: ElementTree.Element, program: dsl.Program, window: int, spare: int) -> None:
        self.program, self.window, self.spare = program, window, spare
        in_place = _number(algo, "inplace", 0) == 1
        self.ranks = [_Rank(program, r, in_place) for r in program.everyone]
        self.pairs: dict[tuple[int, int], deque[_Message]] = {}
        self.under_way = [0] * program.ranks
        for gpu in algo.iter("gpu"):
            number = _number(gpu, "id")
            if not 0 <= number < program.ranks:
                raise Error(f"there is no gpu {number} of {program.ranks}")
            self.ranks[number].blocks[_COPIES] = _Block(-1, -1, 0, list(_copies_in(number, gpu)))
            for tb in gpu.iter("tb"):
                at = _number(tb, "id")
                block = _Block(_number(tb, "send", -1), _number(tb, "recv", -1), _number(tb, "chan", 0))
                block.steps = list(_steps_in(number, at, tb))
                self.ranks[number].blocks[at] = block

    def run(self) -> bool:
        """Whether all could end."""
        moved = True
        while moved:
            moved = False
            for rank, state in enumerate(self.ranks):
                for block in state.blocks.values():
                    while block.done < len(block.steps) and self._is_ready(rank, block):
                        self._take(rank, block)
                        moved = True
        if any(block.done < len(block.steps) for state in self.ranks for block in state.blocks.values()):
            return False
        for state in self.ranks:
            self.program.place = f"gpu {state.steps.rank}"
            state.finish()
        return True

    def stuck(self) -> str:
        return next(
            block.steps[block.done].place
            for state in self.ranks
            for block in state.blocks.values()
            if block.done < len(block.steps)
        )

    def _is_ready(self, rank: int, block: _Block) -> bool:
        step = block.steps[block.done]
        if step.waits_for is not None:
            at, number = step.waits_for
            blocks = self.ranks[rank].blocks
            if at not in blocks:
                raise Error(f"{step.place}: it depends on thread block {at}, which does not exist")
            if blocks[at].done <= number:
                return False
        if step.type in _RECEIVES:
            waiting = self.pairs.get((block.recv, rank))
            if not waiting or waiting[0].channel != block.channel:
                return False
        most = self.window + (self.spare if step.type in _RECEIVES else 0)
        return step.type not in _SENDS or self.under_way[rank] < most

    def _take(self, rank: int, block: _Block) -> None:
        step, state = block.steps[block.done], self.ranks[rank]
        block.done += 1
        self.program.place = step.place
        sources = state.cells_of(step.source, step.count)
        targets = state.cells_of(step.target, step.count)
        if step.type in ("cpy", "re"):
            self._local(state, step, sources, targets)
        elif step.type in _RECEIVES:
            message = self.pairs[(block.recv, rank)].popleft()
            self.under_way[block.recv] -= 1
            if sum(map(len, message.runs)) != step.count:
                raise Error(f"{step.place}: {step.count} chunks are received, and the message has another number")
            got = self._receive(state, step, block.recv, message, sources, targets)
            if step.type in _SENDS:
                state.sent.update(targets if step.type != "rrs" else ())
                self._send(rank, block, got, [o for run in message.runs for o in run])
        elif step.type == "s":
            state.sent.update(sources)
            self._send(rank, block, state.runs(sources), [state.origin(cell) for cell in sources])

    @staticmethod
    def _local(state: _Rank, step: _Step, sources: list[tuple[str, int]], targets: list[tuple[str, int]]) -> None:
        runs, origins = state.runs(sources), [state.origin(cell) for cell in sources]
        before = state.runs(targets) if step.type == "re" else []
        stays = before and not state.sent.intersection(targets) and all(one.space != "input" for one in before)
        written = before if stays else state.write(targets, origins)
        for source, target in _move(before, written):
            if source != target:
                state.steps.copy(source, target)
        for source, target in _move(runs, written):
            (state.steps.reduce if step.type == "re" else state.steps.copy)(source, target)

    @staticmethod
    def _receive(
        state: _Rank,
        step: _Step,
        sender: int,
        message: _Message,
        sources: list[tuple[str, int]],
        targets: list[tuple[str, int]],
    ) -> list[dsl.Slice]:
        origins = [origin for run in message.runs for origin in run]
        adds = step.type in ("rrc", "rrcs", "rrs")
        own = state.runs(sources) if adds else []
        if step.type == "rrs":  # the sum is not kept
            first = [state.steps.scratch(origin).first for origin in origins][0]
            written = [dsl.Slice("scratch", first, len(origins))]
        else:
            written = state.write(targets, origins)
        if len(message.runs) == len(written) == 1 and len(own) <= 1:
            if adds:
                state.steps.recv_reduce(sender, own[0], written[0])
            else:
                state.steps.recv(sender, written[0])
            return written
        arrived = []  # parts that lie apart here or there
        for run in message.runs:
            first = [state.steps.scratch(origin).first for origin in run][0]
            arrived.append(dsl.Slice("scratch", first, len(run)))
            state.steps.recv(sender, arrived[-1])
        for source, target in _move(own, written if adds else []):
            if source != target:
                state.steps.copy(source, target)
        for source, target in _move(arrived, written):
            (state.steps.reduce if adds else state.steps.copy)(source, target)
        return written

    def _send(self, rank: int, block: _Block, runs: list[dsl.Slice], origins: list[int]) -> None:
        if not 0 <= block.send < self.program.ranks or block.send == rank:
            raise Error(f"{self.program.place}: it sends to gpu {block.send}")
        parts, left = [], list(origins)
        for run in runs:
            self.program.rank(rank).send(block.send, run)
            parts.append(left[: run.count])
            left = left[run.count :]
        self.pairs.setdefault((rank, block.send), deque()).append(_Message(block.channel, parts))
        self.under_way[rank] += 1


def _tree_of(path: str | os.PathLike[str]) -> ElementTree.Element:
    with open(path, "rb") as file:
        text = file.read(_MOST_BYTES + 1)
    if len(text) > _MOST_BYTES:
        raise Error(f"{path} has more than {_MOST_BYTES} bytes")
    if b"<!" in text.replace(b"<!--", b""):
        raise Error(f"{path} has a DOCTYPE, which nothing of MSCCL needs and entities make dangerous")
    try:
        algo = ElementTree.fromstring(text)
    except ElementTree.ParseError as problem:
        raise Error(f"{path}: {problem}") from None
    if algo.tag != "algo":
        raise Error(f"{path}: <{algo.tag}> is no <algo> of MSCCL")
    return algo


def read(path: str | os.PathLike[str], name: str | None = None) -> dsl.Algorithm:
    """The algorithm of a file, for as many ranks as it has GPUs. ``name``: default: its own."""
    algo = _tree_of(path)
    called = algo.get("coll", "")
    if called not in _COLLECTIVES:
        raise Error(f"{path}: the collective {called!r} is none of {', '.join(_COLLECTIVES)}")
    collective, ranks, chunks = _COLLECTIVES[called], _number(algo, "ngpus"), _number(algo, "nchunksperloop")
    parts = chunks if collective == "all_reduce" else chunks // max(ranks, 1)
    if not 0 < ranks <= _MOST_RANKS or parts < 1 or (collective != "all_reduce" and chunks % ranks):
        raise Error(f"{path}: {chunks} chunks do not make blocks for {ranks} GPUs")

    def write(made: dsl.Program) -> None:
        if made.ranks != ranks:
            raise Error(f"{path} is for {ranks} ranks, not for {made.ranks}")
        for window, spare in itertools.product((1, 2, 4, 8, 16, 64, 1 << 30), (0, 1)):  # few under way need few slots
            made.restart()
            run = _Run(algo, made, window, spare)
            if run.run():
                return
        raise Error(f"{path}: {run.stuck()} never gets what it waits for: there is no order for one thread")

    label = name or "".join(c if c.isalnum() and c.isascii() else "_" for c in algo.get("name", "imported"))
    imported = dsl.algorithm(collective, parts=parts, name=label)(write)
    imported.about = f"{os.path.basename(path)}, of MSCCL"
    return imported


def _main() -> int:
    parser = argparse.ArgumentParser(prog="python -m anyccl.msccl", description="Imports an algorithm of MSCCL (XML).")
    parser.add_argument("file", help="the algorithm")
    parser.add_argument("-o", "--output", required=True, help="the file for anyccl")
    parser.add_argument("--name", help="its name here; default: as in the file")
    flags = parser.parse_args()
    try:
        imported = read(flags.file, flags.name)
        ranks = _number(_tree_of(flags.file), "ngpus")
        imported.write(flags.output, ranks=ranks)
    except (Error, dsl.Error, OSError) as problem:
        print(f"anyccl.msccl: {problem}", file=sys.stderr)
        return 1
    print(f"{flags.output}: {imported.collective}/{imported.name} for {ranks} ranks; prove it by")
    print(f"  anyccl check --file {flags.output}")
    return 0


if __name__ == "__main__":
    sys.exit(_main())
