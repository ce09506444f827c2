"""Objects of Python between ranks, by pickle; the methods `Communicator.all_gather_object` and its like.

A rank whose object cannot be pickled sends that as an error, so that nobody waits for it.
"""

from __future__ import annotations

import io
import pickle
from typing import TYPE_CHECKING, Any, NoReturn

import numpy

from ._core import Communicator, _need_no_group
from .errors import InvalidArgument, InvalidUsage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_PROTOCOL = 5  # which all versions of Python that anyccl supports have
_BROADCAST, _ALL_GATHER, _GATHER, _SCATTER = 1, 8, 9, 10  # of anycclCollective_t


def _exchange(name: str, comm: Communicator, what: int, pickle_all: Callable[[], list[bytes]], root: int) -> list[bytes]:
    """What comes to this rank. An interrupt from here on is no loss: the other ranks get what they wait for."""
    arrived = comm._exchange_payloads(what, pickle_all, root)
    for rank, (failed, payload) in enumerate(arrived):
        if failed:
            _fail(name, rank if what in (_ALL_GATHER, _GATHER) else root, payload)
    return [payload for _, payload in arrived]


def _fail(name: str, rank: int, text: bytes) -> NoReturn:
    shown = "".join(c if c.isprintable() else "?" for c in text.decode(errors="replace"))
    raise InvalidUsage(f"{name}: rank {rank} cannot send its object: {shown}")


def all_gather(comm: Communicator, obj: Any) -> list[Any]:
    """As `Communicator.all_gather_object` says."""
    name = "all_gather_object"
    _need_no_group(name)
    return [pickle.loads(one) for one in _exchange(name, comm, _ALL_GATHER, lambda: [_pickled(obj)], 0)]


def gather(comm: Communicator, obj: Any, root: int) -> list[Any] | None:
    """As `Communicator.gather_object` says."""
    name = "gather_object"
    _need_no_group(name)
    _check_root(name, comm, root)
    arrived = _exchange(name, comm, _GATHER, lambda: [_pickled(obj)], root)
    return [pickle.loads(one) for one in arrived] if comm.rank == root else None


def broadcast(comm: Communicator, obj: Any, root: int) -> Any:
    """As `Communicator.broadcast_object` says."""
    name = "broadcast_object"
    _need_no_group(name)
    _check_root(name, comm, root)
    mine = (lambda: [_pickled(obj)]) if comm.rank == root else list
    return pickle.loads(_exchange(name, comm, _BROADCAST, mine, root)[0])


def scatter(comm: Communicator, objs: Sequence[Any] | None, root: int) -> Any:
    """As `Communicator.scatter_object` says."""
    name = "scatter_object"
    _need_no_group(name)
    _check_root(name, comm, root)

    def pickle_all() -> list[bytes]:
        if objs is None or len(objs) != comm.size:
            given = "None" if objs is None else f"{len(objs)} objects"
            raise InvalidArgument(f"objs is {given}, but needs one for each of {comm.size} ranks")
        return [_pickled(obj) for obj in objs]

    return pickle.loads(_exchange(name, comm, _SCATTER, pickle_all if comm.rank == root else list, root)[0])


def _pickled(obj: Any) -> bytes:
    return pickle.dumps(obj, _PROTOCOL)


def send(comm: Communicator, obj: Any, dst: int, tag: int) -> None:
    """As `Communicator.send_object` says. One message: a byte, 1 for an error, and the pickle or the text."""
    _need_no_group("send_object")
    file = io.BytesIO(b"\0")
    file.seek(1)
    error: BaseException | None = None
    try:
        pickle.dump(obj, file, _PROTOCOL)
    except BaseException as e:  # whatever the object's own __reduce__ raises, and interrupts
        error = e
        file = io.BytesIO(b"\1" + _text_of(e))
    comm.send(numpy.frombuffer(file.getbuffer(), numpy.uint8), dst, tag=tag)
    if error is not None:
        raise error


def recv(comm: Communicator, src: int | None, tag: int) -> Any:
    """As `Communicator.recv_object` says."""
    _need_no_group("recv_object")
    work = None
    while work is None:  # until no other thread is faster
        source, size = comm._probe_bytes(src, tag)
        message = numpy.empty(size, numpy.uint8)
        work = comm._recv_found(message, source, tag)
    work.wait()
    if size > 0 and message[0] == 1:
        _fail("recv_object", source, message[1:].tobytes())
    return pickle.loads(message[1:].data)


def _text_of(e: BaseException) -> bytes:
    return f"{type(e).__name__}: {e}".encode(errors="replace")


def _check_root(what: str, comm: Communicator, root: int) -> None:
    if not 0 <= root < comm.size:
        raise InvalidArgument(f"{what}: root {root} is not in 0..{comm.size - 1}")
