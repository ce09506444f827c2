"""A process group for torchft: the replicas of a job that loses and regains some of them.

    from anyccl.torch.torchft import ProcessGroupAnyccl
    manager = torchft.Manager(pg=ProcessGroupAnyccl(timeout=timedelta(seconds=30)), ...)

In the place of torchft's ProcessGroupGloo, for tensors in host memory; also reduce_scatter, which that one lacks.
"""

from torch import device as _device
from torch import distributed as _dist
from torchft.process_group import ProcessGroupWrapper as _Wrapper

from ._C import Options as _Options
from ._C import ProcessGroupAnyccl as _Backend

__all__ = ["ProcessGroupAnyccl"]


class ProcessGroupAnyccl(_Wrapper):
    """The group of the replicas that are in the quorum; torchft's Manager configures it anew for each.

    timeout:  a timedelta, of joining and of each operation.
    Errors:   an operation that fails because a replica died raises torch.distributed.DistError in wait(), which the
              Manager takes as a reason for the next quorum; what runs then is aborted.
    Threads:  as the Manager uses it: one configures while no other calls; abort() from any.
    """

    def _create_pg(self, store, rank, world_size):
        options = _Options()
        options._timeout = self._timeout
        options.group_name = f"torchft_quorum_{self._quorum_id}"
        options.global_ranks_in_group = self._global_ranks or []
        backend = _Backend(store, rank, world_size, options)
        group = _dist.ProcessGroup(store, rank, world_size)
        group._set_default_backend(_dist.ProcessGroup.BackendType.CUSTOM)
        group._register_backend(_device("cpu"), _dist.ProcessGroup.BackendType.CUSTOM, backend)
        self._backend = backend
        return group

    def errored(self):
        """An exception if the group failed since it was configured, else None."""
        backend = getattr(self, "_backend", None)
        if backend is None or self._pg is None or backend.get_error() == 0:
            return None
        return _dist.DistBackendError("anyccl: the group of the replicas failed")

    def getBackendName(self):
        return "torchft-anyccl"
