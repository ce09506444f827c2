"""The name "gloo": programs that ask torch.distributed for Gloo get anyccl."""

import datetime as _datetime
import logging as _logging

import torch.distributed as _dist
from torch.distributed import distributed_c10d as _c10d

from ._C import Options, ProcessGroupAnyccl

_REAL_NAME = "real_gloo"
_log = _logging.getLogger("anyccl.torch")


def _options_of(given) -> Options:
    """Of a time limit, or of any backend's options."""
    if getattr(given, "_devices", None) and not _Name.told_of_devices:
        _Name.told_of_devices = True
        _log.warning("anyccl: options._devices is not used: ANYCCL_SOCKET_IFNAME names the network interface")
    options = Options()
    options._profiled_as = "gloo"
    if isinstance(given, _datetime.timedelta):
        options._timeout = given
    elif given is not None:
        options._timeout = given._timeout
        options.group_name = given.group_name
        options.global_ranks_in_group = given.global_ranks_in_group
    return options


def _arguments(store, rank, size, timeout=None, options=None, enable_reconfigure=False):
    """Those of ProcessGroupAnyccl, from those of ProcessGroupGloo."""
    if enable_reconfigure:
        raise NotImplementedError(
            "anyccl: the ranks of a group cannot be changed (enable_reconfigure=True) under Gloo's name; make a new "
            'group, or use the backend "anyccl"')
    if rank == 0 and not _Name.told:
        _Name.told = True
        _log.warning('anyccl: this job runs on anyccl where it asks for "gloo"; Gloo itself is "%s"', _REAL_NAME)
    return store, rank, size, _options_of(timeout if timeout is not None else options)


class _Base(ProcessGroupAnyccl):
    """What classes of programs over ProcessGroupGloo are derived from."""

    def __init__(self, *arguments, **named):
        super().__init__(*_arguments(*arguments, **named))


class _Name(type):
    """What calls, instance checks, look-ups and subclasses of the class ProcessGroupGloo do instead."""

    real = None  # torch's class, once it is replaced
    told = told_of_devices = False

    def __new__(mcs, name, bases, namespace, **named):
        if not any(isinstance(base, mcs) for base in bases):
            return super().__new__(mcs, name, bases, namespace, **named)
        bases = tuple(_Base if isinstance(base, mcs) else base for base in bases)
        return type(_Base)(name, bases, namespace, **named)

    def __call__(cls, *arguments, **named):
        return ProcessGroupAnyccl(*_arguments(*arguments, **named))

    def __instancecheck__(cls, instance):
        return isinstance(instance, (ProcessGroupAnyccl, _Name.real))

    def __subclasscheck__(cls, subclass):
        return issubclass(subclass, (ProcessGroupAnyccl, _Name.real))

    def __getattr__(cls, name):
        return getattr(_Name.real, name)


def _create_real(store, rank, size, timeout):
    return _Name.real(store, rank, size, timeout=timeout)


def replace_gloo() -> None:
    """From now on groups of the backend "gloo" are anyccl's, so programs that name Gloo, or that get it by
    default, need no change. Gloo itself is the backend "real_gloo".

    Call it on every rank, before groups are made and before modules are imported that import
    ProcessGroupGloo by name; or set ANYCCL_TORCH_AS_GLOO=1 in the environment of every rank, which is read
    once, when torch loads the backend. A second call does nothing.
    """
    if _Name.real is not None:
        return
    if not _dist.is_gloo_available():
        raise RuntimeError("anyccl: this torch has no Gloo whose name could be taken; use the backend \"anyccl\"")
    _Name.real = _c10d.ProcessGroupGloo
    taken = _Name("ProcessGroupGloo", (), {"__module__": _Name.real.__module__, "__doc__": replace_gloo.__doc__})
    _c10d.ProcessGroupGloo = _dist.ProcessGroupGloo = taken
    _dist.Backend.register_backend(_REAL_NAME, _create_real, devices=["cpu", "cuda"])
