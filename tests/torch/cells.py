"""Inputs and expected results of the operation matrix. Values are small, so that all types hold them."""

import torch
import torch.distributed as dist

INTEGERS = [torch.int8, torch.uint8, torch.int16, torch.uint16, torch.int32, torch.uint32, torch.int64,
            torch.uint64]
FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2]
COMPLEX = [torch.complex64, torch.complex128]
REDUCIBLE = INTEGERS + FLOATS + COMPLEX + [torch.bool]
# These can only be sent.
OPAQUE = [torch.complex32, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz, torch.float8_e8m0fnu]
OPERATORS = ["SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR", "PREMUL_SUM"]
FACTOR = 2.0


def make(rank, numel, dtype, salt=0):
    """What rank `rank` brings: 1s and 2s, as a contiguous vector."""
    numbers = (torch.arange(numel, dtype=torch.int64) * (2 * rank + 1) + rank + salt) // 2 % 2 + 1
    if dtype == torch.bool:
        return numbers == 1
    if dtype.is_complex:
        wide = torch.complex(numbers.double(), (3 - numbers).double())
        return wide.to(dtype)
    return numbers.to(dtype)


def strided(tensor):
    """The same elements, not contiguous."""
    if tensor.numel() == 0:
        return tensor
    room = torch.zeros(2 * tensor.numel() + 1, dtype=torch.uint8).to(tensor.dtype)
    view = room[1::2]
    view.copy_(tensor)
    return view


def operator(name):
    if name == "PREMUL_SUM":
        return dist._make_nccl_premul_sum(FACTOR)
    return getattr(dist.ReduceOp, name)


def is_refused(name, dtype):
    """What makes no sense."""
    if dtype in OPAQUE:
        return True
    if name in ("BAND", "BOR", "BXOR"):
        return dtype not in INTEGERS and dtype != torch.bool
    if name in ("MIN", "MAX"):
        return dtype.is_complex
    return dtype == torch.bool and name in ("AVG", "PREMUL_SUM")


def reduced(tensors, name):
    """What a reduction of `tensors` gives."""
    dtype = tensors[0].dtype
    if dtype == torch.bool:
        wide = torch.stack(tensors)
        if name in ("SUM", "MAX", "BOR"):
            return wide.any(0)
        if name in ("PRODUCT", "MIN", "BAND"):
            return wide.all(0)
        return wide.sum(0) % 2 == 1
    wide = torch.stack([t.to(torch.complex128 if dtype.is_complex else torch.float64
                             if dtype.is_floating_point else torch.int64) for t in tensors])
    if name == "SUM":
        result = wide.sum(0)
    elif name == "AVG":
        result = wide.sum(0)
        # Torch's division of a complex number rounds more than once.
        result = (torch.view_as_complex(torch.view_as_real(result) / len(tensors)) if dtype.is_complex
                  else result / len(tensors))
        if dtype in INTEGERS:
            result = result.trunc()
    elif name == "PREMUL_SUM":
        result = (wide * FACTOR).sum(0)
    elif name == "PRODUCT":
        result = wide.prod(0)
    elif name == "MIN":
        result = wide.min(0).values
    elif name == "MAX":
        result = wide.max(0).values
    else:
        result = wide[0]
        for one in wide[1:]:
            result = {"BAND": torch.bitwise_and, "BOR": torch.bitwise_or, "BXOR": torch.bitwise_xor}[name](
                result, one)
    return result.to(dtype)


def same(a, b):
    """Bit for bit: every value here is exact, or rounded once."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.numel() == 0:
        return True
    return torch.equal(*(x.clone(memory_format=torch.contiguous_format).view(torch.uint8) for x in (a, b)))
