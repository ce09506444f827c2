"""Codecs: arrays of floats as fewer bytes, and all_reduce with them between hosts.

>>> from anyccl import codec
>>> coded = codec.AllReduce(comm, "int8")              # collective, once
>>> coded.run(gradients, out=gradients, op="avg")      # float32, bfloat16 or float16

A codec is "bf16", "f16", "int8", "mxint8", "mxfp8_e4m3", "mxfp8_e5m2" or "int4"; docs/numbers/codecs.md says by how
much each is off, and when it pays. An infinity or a NaN makes its block NaN, but with "bf16" and "f16".
`anyccl.torch.hooks` trains with it under DDP.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _core
from .errors import InvalidArgument

if TYPE_CHECKING:
    import numpy

    from ._core import Communicator, ReduceOp

__all__ = ["AllReduce", "decode", "encode", "payload_bytes"]


def payload_bytes(codec: str, count: int) -> int:
    """Return the bytes that the payload of `count` elements has."""
    return _core._codec_bytes(codec, count)


def encode(codec: str, x: Any, *, out: Any | None = None) -> numpy.ndarray:
    """Return `x` as a payload.

    Parameters
    ----------
    codec : str
    x : array of float32, bfloat16 or float16
    out : array of uint8, optional
        Has `payload_bytes` bytes.
    """
    if out is None:
        import numpy

        out = numpy.empty(payload_bytes(codec, _core._count_of(x)), "uint8")
    _core._codec_encode(codec, x, out)
    return out


def decode(codec: str, payloads: Any, out: Any) -> Any:
    """Set `out` to the sum of the payloads, added up in float32, and return it.

    Parameters
    ----------
    codec : str
    payloads : sequence of arrays of uint8
        One or more, of any bytes, each as long as `payload_bytes` says for `out`.
    out : array of float32, bfloat16 or float16
    """
    _core._codec_decode(codec, list(payloads), out)
    return out


class AllReduce:
    """An all_reduce in which arrays travel between hosts as payloads of a codec. Collective over `comm`.

    Inside a host nothing is coded. It has communicators of its own. One call at a time, in the same order on all ranks.

    Parameters
    ----------
    comm : Communicator
    codec : str
    everywhere : bool
        Each rank counts as a host.
    if_slow : bool
        It is measured first, and only elements of 4 or of 2 bytes whose sums the codec makes faster are coded.

    Raises
    ------
    InvalidUsage
        Ranks differ in these, and `comm` goes on; of `run`, in what they call it with.
    Unsupported
        A level of reproducibility contradicts: 3 with several hosts unless `everywhere`, 2 and 3 with
        `if_slow`.
    """

    def __init__(self, comm: Communicator, codec: str, *, everywhere: bool = False, if_slow: bool = False) -> None:
        self.codec = codec
        self._coded = _core._CodedAllReduce(comm, codec, everywhere, if_slow)

    def uses_codec(self, dtype: Any) -> bool:
        """Return whether elements of this type travel as payloads between hosts."""
        return self._coded.uses_codec(dtype)

    def run(self, x: Any, *, out: Any | None = None, op: ReduceOp | str = "sum") -> Any:
        """Return the sum or average over all ranks of `x`, bitwise equal on all of them.

        Parameters
        ----------
        x : array of float32, bfloat16 or float16
        out : array, optional
            As `x`; may be `x`. Without it the result is a new array of the kind of `x`.
        op : "sum" or "avg"
        """
        if isinstance(op, str):
            if op not in ("sum", "avg"):
                raise InvalidArgument(f"op is {op!r} with codec {self.codec}: a coded all_reduce has 'sum' and 'avg'")
            op = getattr(_core.ReduceOp, op)
        return self._coded.run(x, out, op)

    def destroy(self) -> None:
        """Take leave of the other ranks, which do so, too."""
        self._coded.destroy()
