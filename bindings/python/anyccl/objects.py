"""Objects of Python between ranks, by pickle; the methods `Communicator.all_gather_object` and its like.

A rank whose object cannot be pickled sends that as an error, in the first round, so that nobody waits for it.
"""

from __future__ import annotations

import io
import pickle
import struct
from typing import TYPE_CHECKING, Any, NoReturn

import numpy

from ._core import Communicator, _need_no_group
from .errors import InvalidArgument, InvalidUsage

if TYPE_CHECKING:
    from collections.abc import Sequence

_PROTOCOL = 5  # which all versions of Python that anyccl supports have
_BLOCK = 512  # bytes of the first round, in which small objects travel whole
_HEAD = struct.Struct("<Qq")  # bytes of the longest payload, of a scatter; of this one, or -1 - those of an error
_INLINE = _BLOCK - _HEAD.size


class _Parcel:
    """A payload as it travels: a block of a fixed size, and the rest if it is longer."""

    def __init__(self, payload: bytes = b"", failed: bool = False, longest: int = 0) -> None:
        if failed:
            payload = payload[:_INLINE]
        self.payload, self.failed, self.longest = payload, failed, longest

    @classmethod
    def of(cls, obj: Any) -> tuple[_Parcel, BaseException | None]:
        """The parcel of an object, and why it is one of an error."""
        try:
            return cls(pickle.dumps(obj, _PROTOCOL)), None
        except BaseException as e:  # whatever the object's own __reduce__ raises, and interrupts
            return cls.of_error(e), e

    @classmethod
    def of_error(cls, e: BaseException) -> _Parcel:
        return cls(_text_of(e), failed=True)

    def block(self) -> numpy.ndarray:
        block = numpy.zeros(_BLOCK, numpy.uint8)
        size = -1 - len(self.payload) if self.failed else len(self.payload)
        head = _HEAD.pack(self.longest, size) + self.payload[:_INLINE]
        block[: len(head)] = numpy.frombuffer(head, numpy.uint8)
        return block

    def rest(self) -> numpy.ndarray:
        return numpy.frombuffer(self.payload, numpy.uint8)[_INLINE:]


class _Arrived:
    """A block that has come from a rank."""

    def __init__(self, block: numpy.ndarray, rank: int) -> None:
        self.longest, size = _HEAD.unpack_from(block)
        self.rank, self.failed = rank, size < 0
        self.size = -1 - size if self.failed else size
        self.inline = block[_HEAD.size : _HEAD.size + min(self.size, _INLINE)].tobytes()
        self.rest_size = max(0, self.size - _INLINE)

    def check(self, what: str, mine: BaseException | None = None) -> None:
        """Raise if it is an error: on the rank that has it, that error itself."""
        if self.failed:
            _fail(what, self.rank, self.inline.decode(errors="replace"), mine)

    def object(self, rest: numpy.ndarray | None = None) -> Any:
        return pickle.loads(self.inline if rest is None else self.inline + rest.tobytes())


def _fail(what: str, rank: int, text: str, mine: BaseException | None) -> NoReturn:
    if mine is not None:
        raise mine
    raise InvalidUsage(f"{what}: rank {rank} cannot send its object: {text}")


def _exchange_heads(what: str, comm: Communicator, obj: Any) -> tuple[_Parcel, list[_Arrived]]:
    """The first round, after which all ranks know the sizes and the errors of all."""
    _need_no_group(what)
    parcel, error = _Parcel.of(obj)
    blocks = comm.all_gather(parcel.block())
    heads = [_Arrived(block, rank) for rank, block in enumerate(blocks)]
    if error is not None:
        raise error
    for head in heads:
        head.check(what)
    return parcel, heads


def _split_rests(rests: numpy.ndarray, heads: list[_Arrived]) -> list[Any]:
    """The objects of `heads`, whose rests follow each other."""
    objects, at = [], 0
    for head in heads:
        objects.append(head.object(rests[at : at + head.rest_size]))
        at += head.rest_size
    return objects


def all_gather(comm: Communicator, obj: Any) -> list[Any]:
    """As `Communicator.all_gather_object` says."""
    parcel, heads = _exchange_heads("all_gather_object", comm, obj)
    counts = [head.rest_size for head in heads]
    if not any(counts):
        return [head.object() for head in heads]
    return _split_rests(comm.all_gather_v(parcel.rest(), counts), heads)


def gather(comm: Communicator, obj: Any, root: int) -> list[Any] | None:
    """As `Communicator.gather_object` says."""
    _check_root("gather_object", comm, root)
    parcel, heads = _exchange_heads("gather_object", comm, obj)
    counts = [head.rest_size for head in heads]
    rests = comm.gather_v(parcel.rest(), counts, root) if any(counts) else numpy.empty(0, numpy.uint8)
    return _split_rests(rests, heads) if comm.rank == root else None


def broadcast(comm: Communicator, obj: Any, root: int) -> Any:
    """As `Communicator.broadcast_object` says."""
    _need_no_group("broadcast_object")
    _check_root("broadcast_object", comm, root)
    parcel, error = _Parcel.of(obj) if comm.rank == root else (_Parcel(), None)
    block = parcel.block()
    comm.broadcast(block, root, out=block)
    head = _Arrived(block, root)
    head.check("broadcast_object", error)
    if head.rest_size == 0:
        return head.object()
    rest = parcel.rest() if comm.rank == root else numpy.empty(head.rest_size, numpy.uint8)
    return head.object(comm.broadcast(rest, root))


def scatter(comm: Communicator, objs: Sequence[Any] | None, root: int) -> Any:
    """As `Communicator.scatter_object` says."""
    _need_no_group("scatter_object")
    _check_root("scatter_object", comm, root)
    block = numpy.empty(_BLOCK, numpy.uint8)
    error: BaseException | None = None
    parcels: list[_Parcel] = []
    if comm.rank == root:
        parcels, error = _parcels(comm, objs)
        comm.scatter(numpy.stack([parcel.block() for parcel in parcels]), root, out=block)
    else:
        comm.scatter(None, root, out=block)
    head = _Arrived(block, root)
    head.check("scatter_object", error)
    if head.longest <= _INLINE:
        return head.object()
    rest = numpy.empty(head.rest_size, numpy.uint8)
    if comm.rank == root:
        rests = [parcel.rest() for parcel in parcels]
        comm.scatter_v(numpy.concatenate(rests), [len(one) for one in rests], root, out=rest)
    else:
        comm.scatter_v(None, None, root, out=rest)
    return head.object(rest)


def _parcels(comm: Communicator, objs: Sequence[Any] | None) -> tuple[list[_Parcel], BaseException | None]:
    """What the root sends to each rank; the same error to all, if there is one."""
    try:
        if objs is None or len(objs) != comm.size:
            given = "None" if objs is None else f"{len(objs)} objects"
            raise InvalidArgument(f"objs is {given}, but needs one for each of {comm.size} ranks")
        payloads = [pickle.dumps(obj, _PROTOCOL) for obj in objs]
    except BaseException as e:
        return [_Parcel.of_error(e)] * comm.size, e
    longest = max(map(len, payloads))
    return [_Parcel(payload, longest=longest) for payload in payloads], None


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
        _fail("recv_object", source, message[1:].tobytes().decode(errors="replace"), None)
    return pickle.loads(message[1:].data)


def _text_of(e: BaseException) -> bytes:
    return f"{type(e).__name__}: {e}".encode(errors="replace")


def _check_root(what: str, comm: Communicator, root: int) -> None:
    if not 0 <= root < comm.size:
        raise InvalidArgument(f"{what}: root {root} is not in 0..{comm.size - 1}")
