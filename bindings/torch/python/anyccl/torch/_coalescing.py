"""What torch.distributed coalesces, for each thread of its own.

Torch keeps the calls between the begin and the end of a coalescing block by group. While one thread is in such a block,
as batch_isend_irecv() is, a collective of another thread on the same group would be taken for a part of it: it would
return at once, and its tensors would stay as they are.
"""

import threading as _threading
from collections.abc import MutableMapping as _MutableMapping

from torch.distributed import distributed_c10d as _c10d


class _OfThisThread(_MutableMapping):
    """A dict for each thread."""

    def __init__(self):
        self._local = _threading.local()

    @property
    def _mine(self):
        return self._local.__dict__

    def __getitem__(self, group):
        return self._mine[group]

    def __setitem__(self, group, calls):
        self._mine[group] = calls

    def __delitem__(self, group):
        del self._mine[group]

    def __contains__(self, group):
        return group in self._mine

    def __iter__(self):
        return iter(self._mine)

    def __len__(self):
        return len(self._mine)


def coalesce_by_thread():
    world = _c10d._world
    if type(getattr(world, "_pg_coalesce_state", None)) is dict:
        world._pg_coalesce_state = _OfThisThread()
