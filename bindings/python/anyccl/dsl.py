"""Algorithms of your own, written in Python: which rank sends what to whom, and what it adds up.

A function makes the program of all ranks for a number of them; `Algorithm.write` lists it for several numbers
in a file that anyccl loads, checks and runs like one of its own (docs/own-algorithms.md).

>>> from anyccl import dsl
>>> @dsl.algorithm("all_reduce")
... def star(p):
...     root = p.rank(0)
...     root.recv_reduce(p.everyone, root.input[0], root.output[0])
...     root.send(p.everyone, root.output[0])
...     for r in map(p.rank, p.everyone[1:]):
...         r.send(0, r.input[0])
...         r.recv(0, r.output[0])
>>> star.write("star.json", ranks=range(2, 9))

A vector is ``parts`` chunks; of collectives with blocks, each block is. `Program.rank` gives the steps of one rank,
in its own words; `Program.chunk` follows a chunk from rank to rank, and each statement is both ends of a message.
Only `Algorithm.load` calls the library.
"""

from __future__ import annotations

import inspect
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Optional

from ._program import HOLDS, Chunk, Error, Program, RankProgram, Ranks, Slice, line_of_user

__all__ = ["Algorithm", "Chunk", "Error", "Program", "RankProgram", "Slice", "algorithm"]

Hosts = Optional[Sequence[int]]  # the number of ranks on each host


class Algorithm:
    """An algorithm for any number of ranks, as a function of a `Program`. Made by `algorithm`."""

    def __init__(self, write: Callable[[Program], None], collective: str, name: str, parts: Any) -> None:
        if collective not in HOLDS:
            raise Error(f"{line_of_user()}: '{collective}' is no collective such as all_reduce")
        self.collective, self.name, self.parts = collective, name, parts
        self.about = inspect.getdoc(write) or ""
        self._write = write

    def program(self, ranks: int, hosts: Hosts = None) -> Program:
        """The programs of the ranks. ``hosts``: the number of ranks on each, one after the other."""
        if hosts is not None and (sum(hosts) != ranks or min(hosts) < 1):
            raise Error(f"{line_of_user()}: hosts {tuple(hosts)} do not have {ranks} ranks")
        bounds = [0]
        for size in hosts or [ranks]:
            bounds.append(bounds[-1] + size)
        on_hosts = [list(range(begin, end)) for begin, end in zip(bounds, bounds[1:])]
        made = Program(self.collective, ranks, self._parts_of(ranks, on_hosts), on_hosts)
        self._write(made)
        return made

    def text(self, ranks: Ranks, hosts: Iterable[Hosts] = (None,)) -> str:
        """The file that `write` writes."""
        hosts = list(hosts)
        sizes = []
        for n in [ranks] if isinstance(ranks, int) else ranks:
            sizes += [_size_text(self.program(n, h), h) for h in hosts if h is None or sum(h) == n]
        if not sizes:
            raise Error(f"{line_of_user()}: none of these numbers of ranks is on these hosts")
        about = f' "about": {json.dumps(self.about)},\n' if self.about else ""
        head = f'{{"format": "anyccl.algorithm/1", "name": "{self.name}", "collective": "{self.collective}",\n'
        return head + about + ' "sizes": [\n' + ",\n".join(sizes) + "]}\n"

    def write(self, path: str | os.PathLike[str], ranks: Ranks, hosts: Iterable[Hosts] = (None,)) -> None:
        """Writes the file that `anyccl.load_algorithms` and ``ANYCCL_ALGO_PATH`` read.

        ``ranks``: numbers of ranks, as ``range(2, 17)``. ``hosts``: for which hosts, as ``[None, (4, 4)]``; None
        stands for all others. Programs are for root 0; other roots are the same with turned ranks, but
        never with given hosts.
        """
        text = self.text(ranks, hosts)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def load(self, ranks: Ranks, hosts: Iterable[Hosts] = (None,)) -> None:
        """Makes it known to this process by its name, as `anyccl.load_algorithms` does with the file."""
        from . import load_algorithms

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, f"{self.name}.json")
            self.write(path, ranks, hosts)
            load_algorithms(path)

    def show(self, ranks: int, hosts: Hosts = None) -> None:
        """Prints the steps of all ranks, with the lines that made them."""
        print(f"{self.collective}/{self.name} for {ranks} ranks\n{self.program(ranks, hosts)}")

    def _parts_of(self, ranks: int, hosts: list[list[int]]) -> int:
        if not callable(self.parts):
            return int(self.parts)
        takes_hosts = len(inspect.signature(self.parts).parameters) > 1
        return int(self.parts(ranks, hosts) if takes_hosts else self.parts(ranks))


def algorithm(collective: str, *, parts: Any = 1, name: str | None = None) -> Callable[[Callable], Algorithm]:
    """Makes an `Algorithm` of a function that writes a `Program`.

    ``parts``: chunks of the vector, or of each block: a number, or a function of the number of ranks, or of that
    and the ranks of each host. ``name``: default: that of the function.
    """
    return lambda write: Algorithm(write, collective, name or write.__name__, parts)


def _size_text(made: Program, hosts: Hosts) -> str:
    host_of = None if hosts is None else [h for h, ranks in enumerate(made.hosts) for _ in ranks]
    text = f'  {{"ranks": {made.ranks}, "parts": {made.parts}, "hosts": {json.dumps(host_of)}'
    programs = [made.rank(r) for r in made.everyone]
    if any(program.origins for program in programs):
        text += ',\n   "scratch": ' + _lines([program.origins for program in programs])
    return text + ',\n   "steps": ' + _lines([program.in_order() for program in programs]) + "}"


def _lines(lists: Sequence[Any]) -> str:
    return "[\n    " + ",\n    ".join(json.dumps(one, separators=(",", ":")) for one in lists) + "]"
