"""The object collectives of torch.distributed, for groups of anyccl.

Torch exchanges the sizes, then pads every object to the largest. Here small objects travel whole in one round of equal
blocks; larger ones follow in a second round, as long as they are, and are unpickled where they arrive. Both rounds are
one place in the order of the group's calls, and go on if a signal ends the wait, as other ranks count on them. A rank
whose object cannot be pickled sends that as an error, so that nobody waits for it.

What is not plainly right, and every other group, goes to torch's own function, which knows the error or the way.
"""

import copyreg as _copyreg
import io as _io
import pickle as _pickle
import struct as _struct

import torch as _torch
import torch.distributed as _dist
from torch.distributed import distributed_c10d as _c10d

from ._backend_of import backend_of as _backend_of
from ._C import ProcessGroupAnyccl
from ._replace import replace as _replace

_BROADCAST, _ALL_GATHER, _GATHER, _SCATTER = 1, 8, 9, 10  # of anycclCollective_t
_CPU = _torch.device("cpu")
_replacements = {}  # by name; the first argument is torch's function


def _replaces(ours):
    _replacements[ours.__name__] = ours
    return ours


def _usable(group):
    """The group, None being that of all ranks, if it has a backend of anyccl for objects; else None."""
    group = _dist.group.WORLD if group is None else group
    try:
        return group if type(_backend_of(group)) is ProcessGroupAnyccl else None
    except Exception:  # no group, or this rank is not in it
        return None


def _root(group, rank, group_rank):
    """The rank in the group; None if the two arguments of torch do not name one."""
    if rank is not None and group_rank is not None:
        return None
    if group_rank is None:
        group_rank = _dist.get_group_rank(group, 0 if rank is None else rank)
    return group_rank if 0 <= group_rank < group.size() else None


def _bytes(count):
    return _torch.empty(count, dtype=_torch.uint8, device=_CPU)


def _is_plain(tensor):
    """Whether its storage, type and layout there say all."""
    return (tensor.device == _CPU and tensor.layout is _torch.strided and not tensor.requires_grad
            and not tensor.is_quantized and not tensor.is_conj() and not tensor.is_neg() and not tensor.__dict__)


def _reduce(tensor):
    """How pickle takes a tensor apart: all of its storage, as torch has it, but without torch.save."""
    if not _is_plain(tensor):
        return tensor.__reduce_ex__(_pickle.DEFAULT_PROTOCOL)
    storage = _bytes(0).set_(tensor.untyped_storage()).numpy().tobytes()
    return _tensor_of, (storage, tensor.dtype, tensor.storage_offset(), tuple(tensor.shape), tensor.stride())


def _tensor_of(storage, dtype, *layout):
    memory = _bytes(len(storage))
    memory.numpy().data[:] = storage
    return _torch.empty(0, dtype=dtype, device=_CPU).set_(memory.untyped_storage(), *layout)


def _pickler(file):
    pickler = _c10d._pickler(file)
    if _c10d._pickler is _pickle.Pickler:  # a program may have given torch another one
        pickler.dispatch_table = {_torch.Tensor: _reduce, **_copyreg.dispatch_table}
    return pickler


def _dump(objects, with_lengths=False):
    """The pickles of the objects one after another, as a tensor; at its end their lengths and number, if asked."""
    file, ends = _io.BytesIO(), [0]
    for one in objects:
        _pickler(file).dump(one)
        ends.append(file.tell())
    if with_lengths:
        lengths = [end - start for start, end in zip(ends, ends[1:])]
        file.write(_struct.pack(f"={len(lengths) + 1}q", *lengths, len(lengths)))
    return _torch.frombuffer(file.getbuffer(), dtype=_torch.uint8)


def _load(data):
    if _c10d._unpickler is _pickle.Unpickler:
        return _pickle.loads(data)
    return _c10d._unpickler(_io.BytesIO(data)).load()


def _exchange(name, what, group, pickle, root=0):
    """What comes to this rank. An interrupt from here on is no loss: the other ranks get what they wait for."""
    arrived = _backend_of(group)._exchange_objects(name, what, pickle, root)
    return [data if isinstance(data, bytes) else data.numpy().data for data in arrived]


def _fill(objects, arrived):
    for i, data in enumerate(arrived):
        objects[i] = _load(data)


@_replaces
def all_gather_object(theirs, object_list, obj, group=None):
    usable = _usable(group)
    if usable is None:
        return theirs(object_list, obj, group)
    _fill(object_list, _exchange("all_gather_object", _ALL_GATHER, usable, lambda: [_dump([obj])]))


@_replaces
def gather_object(theirs, obj, object_gather_list=None, dst=None, group=None, group_dst=None):
    usable = _usable(group)
    root = None if usable is None else _root(usable, dst, group_dst)
    if root is None or (usable.rank() == root) != bool(object_gather_list):
        return theirs(obj, object_gather_list, dst, group, group_dst)
    _fill(object_gather_list, _exchange("gather_object", _GATHER, usable, lambda: [_dump([obj])], root))


@_replaces
def broadcast_object_list(theirs, object_list, src=None, group=None, device=None, group_src=None):
    usable = _usable(group)
    root = None if usable is None else _root(usable, src, group_src)
    if root is None or (device is not None and _torch.device(device).type != "cpu"):
        return theirs(object_list, src, group, device, group_src)
    pickle = (lambda: [_dump(object_list, with_lengths=True)]) if usable.rank() == root else list
    for data in _exchange("broadcast_object_list", _BROADCAST, usable, pickle, root):
        (count,) = _struct.unpack_from("=q", data, len(data) - 8)
        if count != len(object_list):
            raise ValueError("anyccl: broadcast_object_list: "
                             f"object_list has {len(object_list)} objects, that of the source has {count}")
        at, data = 0, memoryview(data)
        for i, size in enumerate(_struct.unpack_from(f"={count}q", data, len(data) - 8 * (count + 1))):
            object_list[i] = _load(data[at : at + size])
            at += size


@_replaces
def scatter_object_list(theirs, scatter_object_output_list, scatter_object_input_list=None, src=None, group=None,
                        group_src=None):
    usable = _usable(group)
    root = None if usable is None else _root(usable, src, group_src)
    sends = root is not None and usable.rank() == root
    if (root is None or not isinstance(scatter_object_output_list, list) or not scatter_object_output_list
            or (sends and not scatter_object_input_list)):
        return theirs(scatter_object_output_list, scatter_object_input_list, src, group, group_src)

    def pickle():
        if len(scatter_object_input_list) != usable.size():
            raise ValueError(f"anyccl: scatter_object_list: the input list has {len(scatter_object_input_list)} objects, "
                             f"but needs one for each of {usable.size()} ranks")
        return [_dump([one]) for one in scatter_object_input_list]
    _fill(scatter_object_output_list, _exchange("scatter_object_list", _SCATTER, usable, pickle if sends else list, root))


def replace_object_collectives() -> None:
    _replace(_replacements)
