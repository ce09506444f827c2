"""Process groups of fewer ranks: torch.distributed.shrink_group, and carry_on after a failure.

torch's function takes the ranks to exclude as ranks of the group, and then compares them with global ranks. What that
gets wrong, of subgroups and of a default group that is shrunk again, is put right here.
"""

import torch as _torch
import torch.distributed as _dist
from torch.distributed import distributed_c10d as _c10d

from ._C import ProcessGroupAnyccl
from ._backend_of import backend_of as _backend_of
from ._objects import _usable
from ._replace import replace as _replace
from ._store import is_gone as _is_gone, replaced_if_gone as _replaced_if_gone

_SHRINK_ABORT = 1


class _Before:
    """Of a group that is going to be shrunk."""

    def __init__(self, group):
        self.ranks = _dist.get_process_group_ranks(group)
        self.is_default = group == _dist.group.WORLD
        self.devices = [one for one in group._device_types if type(group._get_backend(one)) is ProcessGroupAnyccl]

    def number(self, group, gone):
        """Tells torch which ranks the new group has; those of the default group it numbers anew. Torch gives the group a
        backend for one device, and it gets those that the old one had."""
        backend = _backend_of(group)
        for device in self.devices:
            if backend is not None and device not in group._device_types:
                group._register_backend(device, _dist.ProcessGroup.BackendType.GLOO, backend)
        left = [rank for place, rank in enumerate(self.ranks) if place not in gone]
        _c10d._world.pg_group_ranks[group] = {
            place if self.is_default else rank: place for place, rank in enumerate(left)}
        return group


def shrink_group(theirs, ranks_to_exclude, group=None, shrink_flags=0, pg_options=None):
    usable = _usable(group)
    before = None if usable is None else _Before(usable)
    if before is not None and shrink_flags == _SHRINK_ABORT and _is_gone(_c10d._world.pg_map[usable][1]):
        raise _dist.DistBackendError(
            "anyccl: shrink_group: the store of the group is gone, with the process that had it: call "
            "anyccl.torch.carry_on(), which makes another one, on all ranks that are left")
    made = theirs(ranks_to_exclude, group, shrink_flags, pg_options)
    return made if before is None else before.number(made, ranks_to_exclude)


def carry_on(group=None, exclude=()) -> _dist.ProcessGroup:
    """After a failure: replaces the process group, None being the default one, by a group of the ranks that are left.

    All ranks that are left call it, whatever their own error was; a rank that waits in another call on the group has an
    error there, and calls it, too. They agree who is left: all but those that have died or have destroyed the group, and
    those in `exclude` (ranks of the group) of any of them, such as one that is stopped. Ranks keep their order.

    Returns: the new group; the old one is destroyed. The new default group numbers its ranks from 0, and all other groups
             are destroyed, as by torch.distributed.shrink_group: make them again.
    Store:   the old group's. If that was a TCPStore and has gone with the process that had it, such as rank 0, there is
             a new TCPStore at the new group's rank 0; torchrun's is its agent's, and stays.
    Raises:  DistBackendError naming ranks that live and do not come within ANYCCL_TIMEOUT seconds: it may be called
             again, also with these in `exclude`. The same where the others do without this rank, and where a new store
             cannot be made or reached. ValueError for a group that is not, or not only, anyccl's.
    """
    usable = _usable(group)
    if usable is None or any(
            type(usable._get_backend(device)) is not ProcessGroupAnyccl for device in usable._device_types):
        raise ValueError("anyccl: carry_on is for groups of the backend anyccl alone")
    if not hasattr(_c10d, "_finalize_shrunk_group"):
        raise NotImplementedError(f"anyccl: torch {_torch.__version__} cannot shrink groups, as torch 2.10 can")
    before = _Before(usable)
    backend, gone = _backend_of(usable)._carry_on(list(exclude))
    name, store = _c10d._world.pg_map[usable]
    left = _replaced_if_gone(store, backend)
    if left is not store:
        backend._use_store(left)
        _c10d._world.pg_map[usable] = name, left
    made = _c10d._finalize_shrunk_group(
        {"process_group": usable, "is_default_group": before.is_default}, set(gone), backend)
    return before.number(made, gone)


def correct_shrink_group() -> None:
    _replace({"shrink_group": shrink_group})
