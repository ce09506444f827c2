"""The backend of a group, whatever devices it is for."""

import torch as _torch

from ._C import ProcessGroupAnyccl

_CPU = _torch.device("cpu")


def backend_of(group):
    """The backend of anyccl that `group` has for CPU tensors, or that it has alone; else None."""
    devices = group._device_types
    if _CPU in devices:
        devices = [_CPU]
    backends = {group._get_backend(device) for device in devices}
    backend = backends.pop() if len(backends) == 1 else None
    return backend if isinstance(backend, ProcessGroupAnyccl) else None
