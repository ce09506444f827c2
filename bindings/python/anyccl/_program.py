"""The programs of ranks, step by step or chunk by chunk: the words of `anyccl.dsl`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Union

Ranks = Union[int, Iterable[int]]

_VECTOR, _BLOCK, _BLOCKS, _NOTHING = "vector", "block", "blocks", ""
# Input and output, at the root and elsewhere.
HOLDS = {
    "all_reduce": (_VECTOR, _VECTOR, _VECTOR, _VECTOR),
    "broadcast": (_VECTOR, _VECTOR, _NOTHING, _VECTOR),
    "barrier": (_VECTOR, _VECTOR, _VECTOR, _VECTOR),
    "reduce": (_VECTOR, _VECTOR, _VECTOR, _NOTHING),
    "reduce_scatter": (_BLOCKS, _BLOCK, _BLOCKS, _BLOCK),
    "all_gather": (_BLOCK, _BLOCKS, _BLOCK, _BLOCKS),
    "gather": (_BLOCK, _BLOCKS, _BLOCK, _NOTHING),
    "scatter": (_BLOCKS, _BLOCK, _NOTHING, _BLOCK),
    "all_to_all": (_BLOCKS, _BLOCKS, _BLOCKS, _BLOCKS),
    "scan": (_VECTOR, _VECTOR, _VECTOR, _VECTOR),
    "exscan": (_VECTOR, _NOTHING, _VECTOR, _VECTOR),
}
for _name in ("all_gather", "reduce_scatter", "gather", "scatter", "all_to_all"):
    HOLDS[_name + "_v"] = HOLDS[_name]
_SPACES = {"input": "i", "output": "o", "scratch": "s"}


class Error(ValueError):
    """A program that cannot be written down; names the line, and of a step its rank and number."""


def line_of_user() -> str:
    """The line of the user's program that is running."""
    frame = sys._getframe(1)
    while frame.f_globals.get("__package__") == __package__ and frame.f_back is not None:
        frame = frame.f_back
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


@dataclass(frozen=True)
class Slice:
    """``count`` chunks of a rank from chunk ``first`` on; for the k-th peer of a step, ``stride`` * k further on."""

    space: str
    first: int
    count: int = 1
    stride: int = 0

    def by(self, stride: int) -> Slice:
        """The same, another piece for each peer."""
        return Slice(self.space, self.first, self.count, stride)

    def __str__(self) -> str:
        count = f":{self.count}" if self.count != 1 else ""
        return f"{_SPACES[self.space]}{self.first}{count}" + (f"+{self.stride}" if self.stride else "")


class Space:
    """The input or output of a rank: ``space[2]``, ``space[2:5]``, ``space[:]``. A circle: -1 is the last chunk."""

    def __init__(self, name: str, chunks: int) -> None:
        self.name, self.chunks = name, chunks

    def __len__(self) -> int:
        return self.chunks

    def __getitem__(self, at: int | slice) -> Slice:
        if isinstance(at, slice):
            begin = 0 if at.start is None else at.start
            end = self.chunks if at.stop is None else at.stop
        else:
            begin, end = at, at + 1
        if not 0 < end - begin <= self.chunks:
            raise Error(f"{line_of_user()}: {self.name}[{begin}:{end}] is not in the {self.chunks} chunks that there are")
        return Slice(self.name, begin % self.chunks, end - begin)


class RankProgram:
    """The steps of one rank. Its messages to and from another rank match in the order of the steps."""

    def __init__(self, program: Program, rank: int) -> None:
        self.program, self.rank = program, rank
        self.input = Space("input", program.chunks(rank, "input"))
        self.output = Space("output", program.chunks(rank, "output"))
        self.origins: list[int] = []
        self.steps: list[list[Any]] = []
        self.rounds: list[int] = []  # of each step

    def scratch(self, origin: int, count: int = 1) -> Slice:
        """Fresh room for ``count`` chunks of the collective's vector, from chunk ``origin`` on."""
        first = len(self.origins)
        self.origins += [(origin + i) % self.program.origins for i in range(count)]
        return Slice("scratch", first, count)

    def copy(self, source: Slice, target: Slice) -> RankProgram:
        return self._add("copy", None, source, target)

    def reduce(self, source: Slice, target: Slice) -> RankProgram:
        """target = target + source"""
        return self._add("reduce", None, source, target)

    def send(self, to: Ranks, source: Slice) -> RankProgram:
        """Lets peers read; complete when they have. This rank itself reads nothing."""
        return self._add("send", to, source)

    def recv(self, of: Ranks, target: Slice, own: Slice | None = None) -> RankProgram:
        """Of several, each one's piece. This rank itself among them: from ``own``."""
        return self._add("recv", of, target, *([] if own is None else [own]))

    def recv_reduce(self, of: Ranks, own: Slice, target: Slice) -> RankProgram:
        """target = the sum of all messages, folded by the aligned tree, with one rounding; this rank itself: ``own``.
        Of one rank: own + message."""
        return self._add("recv_reduce", [self.rank, of] if isinstance(of, int) else of, own, target)

    def _add(self, op: str, peers: Ranks | None, *slices: Slice) -> RankProgram:
        step: list[Any] = [op]
        if peers is not None:
            step.append([peers] if isinstance(peers, int) else list(peers))
            for peer in step[1]:
                if not 0 <= peer < self.program.ranks:
                    raise self._wrong(op, f"there is no rank {peer} of {self.program.ranks}")
        target = None if op == "send" else slices[0] if op == "recv" else slices[1]
        if target is not None and target.space == "input":
            raise self._wrong(op, f"{target} is input, which stays as it is")
        for one in slices:
            self._check(op, one)
        self.rounds.append(self.program._round)
        self.steps.append([*step, *map(str, slices), "@" + (self.program.place or line_of_user())])
        return self

    def in_order(self) -> list[list[Any]]:
        """The steps by rounds, and in each round first what is sent, so that nobody waits longer than needed."""
        if not self.program._is_followed:
            return self.steps
        order = sorted(range(len(self.steps)), key=lambda i: (self.rounds[i], self.steps[i][0] != "send"))
        return [self.steps[i] for i in order]

    def _check(self, op: str, one: Slice) -> None:
        if one.space == "scratch" and one.first + one.count > len(self.origins):
            raise self._wrong(op, f"{one} is not in the {len(self.origins)} chunks of scratch that there are")
        room = {"input": self.input.chunks, "output": self.output.chunks}.get(one.space, len(self.origins))
        if not 0 < one.count <= room or one.first < 0 or one.stride < 0:
            raise self._wrong(op, f"{one} is not in its {room} chunks of {one.space}")

    def _wrong(self, op: str, why: str) -> Error:
        return Error(f"{self.program.place or line_of_user()}: rank {self.rank} step {len(self.steps)} ({op}): {why}")


class Chunk:
    """A chunk, or several one after the other, at a rank."""

    def __init__(self, program: Program, rank: int, at: Slice) -> None:
        self.program, self.rank, self.at = program, rank, at

    def copy(self, rank: Ranks, space: str = "output", first: int | None = None) -> Any:
        """Copies it to a rank, or with one message to several, and returns it there, or a list. ``first``: its
        chunk in the space; default: as here."""
        ranks = [rank] if isinstance(rank, int) else list(rank)
        others = [r for r in ranks if r != self.rank]
        there = [self._place_at(r, space, first) for r in ranks]
        self.program._begin([self], there)
        if others:
            self.program.rank(self.rank).send(others, self.at)
        for r, target in zip(ranks, there):
            if r == self.rank:
                self.program.rank(r).copy(self.at, target.at)
            else:
                self.program.rank(r).recv(self.rank, target.at)
        self.program._round = 0
        return there[0] if isinstance(rank, int) else there

    def reduce(self, *others: Chunk, space: str | None = None, first: int | None = None) -> Chunk:
        """Adds up this chunk and others, each of another rank or of this one, and returns the sum, which is in the
        place of this chunk. Input stays as it is: its sum is in the output, or wherever ``space`` says."""
        me = self.program.rank(self.rank)
        target = self
        if space is not None or first is not None or self.at.space == "input":
            target = self._place_at(self.rank, space or "output", first)
        self.program._begin([self, *others], [target])
        remote = [other for other in others if other.rank != self.rank]
        for other in remote:
            self.program.rank(other.rank).send(self.rank, other.at)
        if remote:
            me.recv_reduce([self.rank, *(other.rank for other in remote)], self.at, target.at)
        elif target is not self:
            me.copy(self.at, target.at)
        for other in others:
            if other.rank == self.rank:
                me.reduce(other.at, target.at)
        self.program._round = 0
        return target

    def _cells(self) -> list[tuple[int, str, int]]:
        """Its chunks, each with its rank; input and output are circles."""
        program = self.program.rank(self.rank)
        room = len(program.origins) if self.at.space == "scratch" else len(getattr(program, self.at.space))
        return [(self.rank, self.at.space, (self.at.first + i) % room) for i in range(self.at.count)]

    def _place_at(self, rank: int, space: str, first: int | None) -> Chunk:
        p = self.program
        if space == "scratch":
            return Chunk(p, rank, p._scratch_for(self, rank, first))
        return p.chunk(rank, space, self.at.first if first is None else first, self.at.count)


class Program:
    """The programs of all ranks, for one number of them.

    Attributes
    ----------
    ranks : how many there are
    hosts : the ranks of each host; one host where none are given
    parts : chunks of the vector, or of each block
    everyone : all ranks
    place : what made the next steps, for messages; None: the line of the program that is running
    """

    def __init__(self, collective: str, ranks: int, parts: int, hosts: list[list[int]]) -> None:
        self.collective, self.ranks, self.parts, self.hosts = collective, ranks, parts, hosts
        self.everyone = list(range(ranks))
        widest = max(self.chunks(r, side) for r in {0, ranks - 1} for side in ("input", "output"))
        pairs = collective.startswith("all_to_all")
        self.origins = widest * (ranks if pairs else 1)
        self.restart()

    def restart(self) -> None:
        """Forgets all steps."""
        self.place: str | None = None
        self._programs = [RankProgram(self, r) for r in range(self.ranks)]
        self._scratch: dict[tuple[int, int], Slice] = {}
        self._round = 0  # of the statement that is running; 0: none, a step of one rank
        self._read: dict[tuple[int, str, int], int] = {}  # in which round a chunk was last read, ...
        self._written: dict[tuple[int, str, int], int] = {}

    @property
    def _is_followed(self) -> bool:
        """Whether all steps are of statements about chunks, which know their messages."""
        return all(number > 0 for program in self._programs for number in program.rounds)

    def _begin(self, sources: list[Chunk], targets: list[Chunk]) -> None:
        """A statement, in the round after all that wrote what it reads, or used what it writes."""
        read = [cell for chunk in sources for cell in chunk._cells()]
        written = [cell for chunk in targets for cell in chunk._cells()]
        before = [self._written.get(cell, 0) for cell in read + written]
        before += [self._read.get(cell, 0) for cell in written]
        self._round = 1 + max(before)
        for cell in read:
            self._read[cell] = max(self._round, self._read.get(cell, 0))
        self._written.update(dict.fromkeys(written, self._round))

    def rank(self, rank: int) -> RankProgram:
        if not 0 <= rank < self.ranks:
            raise Error(f"{line_of_user()}: there is no rank {rank} of {self.ranks}")
        return self._programs[rank]

    def chunk(self, rank: int, space: str, first: int, count: int = 1) -> Chunk:
        """A chunk of a rank, to be copied or reduced. Scratch memory has those that were copied there."""
        program = self.rank(rank)
        if space == "scratch":
            known = self._scratch.get((rank, first))
            if known is None or known.count < count:
                raise Error(f"{line_of_user()}: nothing was copied to scratch chunk {first} of rank {rank}")
            return Chunk(self, rank, Slice("scratch", known.first, count))
        if space not in ("input", "output"):
            raise Error(f"{line_of_user()}: '{space}' is none of input, output, scratch")
        return Chunk(self, rank, getattr(program, space)[first : first + count])

    def chunks(self, rank: int, side: str) -> int:
        """How many a rank has of its input or output."""
        held = HOLDS[self.collective][(0 if rank == 0 else 2) + (0 if side == "input" else 1)]
        return self.parts * {_NOTHING: 0, _BLOCKS: self.ranks}.get(held, 1)

    def origin(self, rank: int, at: Slice) -> int:
        """The number of a chunk in the collective's own vector: for `RankProgram.scratch`."""
        if at.space == "scratch":
            return self._programs[rank].origins[at.first]
        at_root = 0 if rank == 0 else 2
        held = HOLDS[self.collective][at_root + (0 if at.space == "input" else 1)]
        if self.collective.startswith("all_to_all"):
            block, part = divmod(at.first, self.parts)
            pair = rank * self.ranks + block if at.space == "input" else block * self.ranks + rank
            return pair * self.parts + part
        return rank * self.parts + at.first if held == _BLOCK else at.first

    def _scratch_for(self, chunk: Chunk, rank: int, first: int | None) -> Slice:
        origin, count = self.origin(chunk.rank, chunk.at), chunk.at.count
        key = (rank, chunk.at.first if first is None else first)
        known = self._scratch.get(key)
        wanted = [(origin + i) % self.origins for i in range(count)]
        if known is None or self._programs[rank].origins[known.first : known.first + count] != wanted:
            known = self._scratch[key] = self._programs[rank].scratch(origin, count)
        return Slice("scratch", known.first, count)

    def __str__(self) -> str:
        lines = []
        for program in self._programs:
            lines.append(f"rank {program.rank}")
            for i, (op, *words, place) in enumerate(program.in_order()):
                lines.append(f"  {i:3} {op:<11} {' '.join(map(_word, words)):<24} {place[1:]}")
        return "\n".join(lines)


def _word(word: Any) -> str:
    return ",".join(map(str, word)) if isinstance(word, list) else word
