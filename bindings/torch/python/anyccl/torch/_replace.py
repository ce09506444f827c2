"""Functions of torch.distributed that this package puts its own in the place of."""

import functools as _functools
import inspect as _inspect
import sys as _sys
import types as _types

from torch.distributed import distributed_c10d as _c10d


def replace(replacements) -> None:
    """Puts these, by name, in the place of torch's, also where modules have imported them by name. The first argument
    of each is torch's function. Functions whose arguments this torch has changed stay. A second call does nothing."""
    modules = [_names_of(module) for module in list(_sys.modules.values())]
    for name, ours in replacements.items():
        theirs = getattr(_c10d, name, None)
        if theirs is None or hasattr(theirs, "_anyccl"):
            continue
        if list(_inspect.signature(theirs).parameters) != list(_inspect.signature(ours).parameters)[1:]:
            continue
        replacement = _bound(theirs, ours)
        for names in modules:
            if names.get(name) is theirs:
                names[name] = replacement


def _bound(theirs, ours):
    uncompiled = None  # torch.compile does not look into it, as it does not into torch's

    @_functools.wraps(theirs)
    def replacement(*args, **kwargs):
        nonlocal uncompiled
        if uncompiled is None and hasattr(_sys.modules.get("torch._dynamo"), "disable"):
            uncompiled = _sys.modules["torch._dynamo"].disable(ours)
        return (uncompiled or ours)(theirs, *args, **kwargs)

    replacement._anyccl = replacement._torchdynamo_disable = True
    return replacement


def _names_of(module):
    """Its dictionary; a module that is loaded when it is first used stays as it is."""
    return object.__getattribute__(module, "__dict__") if isinstance(module, _types.ModuleType) else {}
