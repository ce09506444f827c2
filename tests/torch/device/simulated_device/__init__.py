"""torch's device "simulated", over the simulated driver of CUDA: for tests of what programs do on a GPU.

    import simulated_device          # registers torch.simulated; starts no driver before the first use of the device
    torch.ones(3, device="simulated:1")

Memory of the device cannot be touched by the host, streams run in threads of their own, and freed memory is used again at
once by the same stream, as in torch's allocator for CUDA. SIMULATED_CUDA_CHAOS=SEED,MICROSECONDS delays what streams do.
"""

import contextlib
import sys

import torch

from . import _C
from ._C import current_device, device_count, set_device  # noqa: F401  torch looks for them here

NAME = "simulated"


def autoload():
    """The entry point "torch.backends", for programs that only name the device."""


def is_available():
    return device_count() > 0


def is_initialized():
    return True


def _is_in_bad_fork():
    return False


def manual_seed_all(seed):
    """Random numbers are the host's."""


def Stream(device=None, priority=0):
    return torch.Stream(device or f"{NAME}:{current_device()}", priority=priority)


def Event(**options):
    return torch.Event(NAME, **options)


def stream(one):
    return contextlib.nullcontext() if one is None else one


def current_stream(device=None):
    return torch.accelerator.current_stream(device)


@contextlib.contextmanager
def held():
    """The stream that is current here does nothing more until the end of this block."""
    word = _C.hold()
    try:
        yield
    finally:
        _C.release(word)


torch.utils.rename_privateuse1_backend(NAME)
torch._register_device_module(NAME, sys.modules[__name__])
