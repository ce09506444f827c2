"""The anyccl backend of torch.distributed.

    import torch.distributed as dist
    import anyccl.torch          # not needed where anyccl-torch is installed: torch loads it
    dist.init_process_group("anyccl")              # or "cuda:anyccl", "cpu:anyccl,cuda:nccl"

All operations of torch.distributed on CPU tensors, in Gloo's place, and on those of CUDA devices. Beyond torch's own
documentation they promise:

Shapes:  any, also empty and not contiguous; elements are matched in row-major order. Tensors in lists
         may differ in size where torch does not forbid it (all_gather, reduce_scatter, gather,
         scatter, all_to_all); every rank must then know all sizes.
Devices: a call on tensors of a device comes after what the current stream has to do there, and copies them to the host
         and back. When wait() returns, or a future is complete, every stream sees the result. Tensors of a call are on
         one device, those of a group on one and on the CPU; ranks may differ.
Order:   collectives of a group run in the order in which they are called. Point-to-point operations do
         not wait for them, and are matched in order per (sender, receiver, tag).
Threads: any thread may call; ranks must still agree on the order of collectives. wait() and all
         other calls that take time let other Python threads run.
Time:    the limit of a collective runs from its turn, that of a send or receive while wait() waits for it.
Errors:  torch.distributed.DistError with anyccl's message, which names the rank: DistNetworkError if the
         network is the cause, such as a host that is silent, else DistBackendError. A failure is permanent: make a new
         group, or carry_on(). Wrong arguments raise RuntimeError, ValueError or TypeError, and the group can still be
         used.
"""

import atexit as _atexit
import datetime as _datetime
import os as _os

# If torch is imported first, it loads this package during its own import: keep it from doing so here,
# where this package imports torch.
_autoload = _os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD")
_os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
try:
    import torch as _torch
finally:
    if _autoload is None:
        del _os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"]
    else:
        _os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = _autoload
import torch.distributed as _dist

from ._built import FOR_TORCH as _FOR_TORCH

if not _torch.__version__.startswith(_FOR_TORCH + "."):  # c10d::Backend changes with every minor version
    raise ImportError(
        f"this anyccl-torch was built for torch {_FOR_TORCH}, and this is torch {_torch.__version__}: build it again "
        "(docs/torch.md, Installing)")

from . import _C
from ._C import Options, ProcessGroupAnyccl
from ._coalescing import coalesce_by_thread as _coalesce_by_thread
from ._flight_record import write_flight_record
from ._gloo_name import replace_gloo
from ._leaves import all_reduce_leaves
from ._objects import replace_object_collectives as _replace_object_collectives
from ._shrink import carry_on
from ._shrink import correct_shrink_group as _correct_shrink_group

__all__ = ["Options", "ProcessGroupAnyccl", "all_reduce_leaves", "carry_on", "disable_arena", "enable_arena", "replace_gloo", "use_as_cpu_default",
           "write_flight_record"]


def _create(given, pg_options):
    """One rank of a group, for torch.distributed."""
    if isinstance(pg_options, Options):
        options = pg_options.__copy__()
    elif pg_options is None or isinstance(pg_options, _C.AnyOptions):  # of the backend of another device
        options = Options()
    else:
        raise TypeError(
            "anyccl: pg_options must be anyccl.torch.Options, not "
            f"{type(pg_options).__module__}.{type(pg_options).__qualname__}")
    options._timeout = given.timeout
    options.group_name = given.group_id
    options.global_ranks_in_group = given.global_ranks_in_group
    if getattr(given, "enable_reconfigure", False):  # torch 2.14
        options.enable_reconfigure = True
    return ProcessGroupAnyccl(given.store, given.group_rank, given.group_size, options)


def use_as_cpu_default() -> None:
    """Makes anyccl the backend of init_process_group(), init_device_mesh() and new_group() for CPU tensors
    when they are given none. Call it before them, on every rank."""
    _dist.Backend.default_device_backend_map["cpu"] = "anyccl"


def enable_arena(least_bytes: int = 65536) -> None:
    """From now on CPU tensors of at least `least_bytes` bytes are in memory that the ranks of this host
    can read directly: collectives on them copy less. Every rank decides for itself.

    Memory: shared (memfd), and counted as such; where there is none, tensors get ordinary memory. Regions
            whose tensors are all gone are returned to the system, but for one of up to 32 MiB.
    Fork:   a child reads the tensors of its parent as they were, and writes to copies of its own; later
            writes of the parent may show where the child has not written. New tensors of the child are in
            memory of its own.
    Threads: any.
    """
    if least_bytes < 0:
        raise ValueError(f"anyccl: least_bytes is {least_bytes}")
    _C.enable_arena(least_bytes)


def disable_arena() -> None:
    """New tensors get ordinary memory again; existing ones stay where they are."""
    _C.disable_arena()


def _register() -> None:
    if not _dist.is_available() or "ANYCCL" in _dist.Backend._plugins:
        return
    _dist.Backend.register_backend("anyccl", _create, extended_api=True, devices=["cpu", "cuda"])
    # Operations that complete later might release tensors after the interpreter has ended.
    _atexit.register(_C.close_all, _datetime.timedelta(seconds=2))
    _coalesce_by_thread()
    _correct_shrink_group()
    if _os.environ.get("ANYCCL_TORCH_OBJECTS", "1") != "0":
        _replace_object_collectives()
    if _os.environ.get("ANYCCL_TORCH_AS_GLOO", "0") != "0":
        replace_gloo()


_register()
