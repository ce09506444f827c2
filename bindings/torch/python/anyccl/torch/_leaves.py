"""Sums whose bits do not depend on the number of ranks."""

import torch as _torch
import torch.distributed as _dist

from ._C import ProcessGroupAnyccl


def all_reduce_leaves(output: _torch.Tensor, input: _torch.Tensor, leaves: int, op=_dist.ReduceOp.SUM,
                      group: _dist.ProcessGroup | None = None, async_op: bool = False):
    """Adds up the leaves of all ranks into `output`: the same bits for every number of ranks.

    docs/numbers/reproducibility.md says more.

    Shapes: `input` has leaves / size parts of the size of `output`, one after the other, equally many on all ranks and a power
            of two of them: those of rank 0 come first. It may be of float16 or bfloat16 where `output` is float32; they are
            added up in float32 and rounded once, if `output` is not.
    op:     a ReduceOp of torch; an average is divided by `leaves`. Not PREMUL_SUM.
    group:  of anyccl, whatever its level of reproducibility; None: the default one.
    Returns a Work with async_op, else None, when `output` is there.
    Errors: ValueError and RuntimeError, as other operations.
    """
    backend = (group or _dist.group.WORLD)._get_backend(output.device)
    if not isinstance(backend, ProcessGroupAnyccl):
        raise ValueError(f"anyccl: all_reduce_leaves needs a group of anyccl, not of {backend.name()}")
    options = _dist.AllreduceOptions()
    options.reduceOp = op
    options.asyncOp = async_op
    work = backend._all_reduce_leaves(output, input, leaves, options)
    if async_op:
        return work
    work.wait()
