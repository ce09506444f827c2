"""The object collectives of torch.distributed, for groups whose CPU tensors are anyccl's.

Torch exchanges the sizes, then pads every object to the largest. Here small objects travel whole in one round of equal
blocks; larger ones follow in a second round, as long as they are, and are unpickled where they arrive. Both rounds are
one place in the order of the group's calls, and go on if a signal ends the wait, as other ranks count on them.

What is not plainly right, and every other group, goes to torch's own function, which knows the error or the way.
"""

import contextlib as _contextlib
import copyreg as _copyreg
import io as _io
import pickle as _pickle
import struct as _struct
import threading as _threading

import torch as _torch
import torch.distributed as _dist
from torch.distributed import distributed_c10d as _c10d

from ._C import ProcessGroupAnyccl, _Sequence
from ._replace import replace as _replace

_BLOCK = 512  # bytes of the first round, of each rank
_HEAD = _struct.Struct("=qq")  # bytes of the payload; a second number that the operation defines
_INLINE = _BLOCK - _HEAD.size
_CPU = _torch.device("cpu")
_replacements = {}  # by name; the first argument is torch's function


def _replaces(ours):
    _replacements[ours.__name__] = ours
    return ours


def _usable(group):
    """The group, None being that of all ranks, if its CPU tensors are anyccl's; else None."""
    group = _dist.group.WORLD if group is None else group
    try:
        return group if type(group._get_backend(_CPU)) is ProcessGroupAnyccl else None
    except Exception:  # no group, this rank is not in it, or it has nothing for CPU tensors
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
    """The pickles of the objects one after another, as a tensor, and their lengths; at its end these again, if asked."""
    file, ends = _io.BytesIO(), [0]
    for one in objects:
        _pickler(file).dump(one)
        ends.append(file.tell())
    lengths = [end - start for start, end in zip(ends, ends[1:])]
    if with_lengths:
        file.write(_struct.pack(f"={len(lengths)}q", *lengths))
    return _torch.frombuffer(file.getbuffer(), dtype=_torch.uint8), lengths


def _load(data):
    if _c10d._unpickler is _pickle.Unpickler:
        return _pickle.loads(data)
    return _c10d._unpickler(_io.BytesIO(data)).load()


def _block(data, second=0):
    """What a rank sends in the first round."""
    block = bytearray(_BLOCK)
    _HEAD.pack_into(block, 0, len(data), second)
    if len(data) <= _INLINE:
        block[_HEAD.size : _HEAD.size + len(data)] = data.numpy().data
    return _torch.frombuffer(block, dtype=_torch.uint8)


def _inline(blocks, at=0):
    """The payload of the block that begins there and holds all of it; `blocks` is a memoryview."""
    at += _HEAD.size
    return blocks[at : at + _HEAD.unpack_from(blocks, at - _HEAD.size)[0]]


def _later(length):
    """The bytes of a payload in the second round."""
    return length if length > _INLINE else 0


def _run(group, rounds):
    """What `rounds` returns, a generator of the works of its calls, each of which is waited for before the next."""
    with _Sequence(group._get_backend(_CPU)) as sequence:
        while True:
            try:
                work = next(rounds)
            except StopIteration as end:
                return end.value
            try:
                work.wait()
            except BaseException:
                if not work.is_completed():  # a signal's handler has raised it
                    sequence.hand_over()
                    _threading.Thread(target=_finish, args=(sequence, work, rounds), daemon=True).start()
                raise


def _finish(sequence, work, rounds):
    with _contextlib.suppress(Exception):  # the group has failed, as its next call says
        sequence.take()
        work.wait()
        for work in rounds:
            work.wait()
    sequence.end()


def _exchange_blocks(data, group):
    """The blocks of all ranks, as a memoryview, and the lengths of their payloads."""
    blocks = _bytes(group.size() * _BLOCK)
    gather = getattr(_dist, "all_gather_single", None) or _dist.all_gather_into_tensor  # its name before torch 2.13
    yield gather(blocks, _block(data), group=group, async_op=True)
    blocks = blocks.numpy().data
    return blocks, [_HEAD.unpack_from(blocks, at)[0] for at in range(0, len(blocks), _BLOCK)]


def _room(lengths, mine, rank):
    """Memory for what comes from each rank in the second round, in one piece but for `mine`, which is there already."""
    later = [_later(length) for length in lengths]
    later[rank] = 0
    parts = list(_bytes(sum(later)).split(later))
    parts[rank] = mine
    return parts


def _fill(objects, blocks, parts=()):
    """The objects of all ranks; `parts` is empty if the blocks hold all of them."""
    for i in range(len(blocks) // _BLOCK):
        objects[i] = _load(parts[i].numpy() if parts and len(parts[i]) else _inline(blocks, i * _BLOCK))


@_replaces
def all_gather_object(theirs, object_list, obj, group=None):
    usable = _usable(group)
    if usable is None:
        return theirs(object_list, obj, group)
    data, _ = _dump([obj])

    def rounds():
        blocks, lengths = yield from _exchange_blocks(data, usable)
        if not any(map(_later, lengths)):
            return blocks, ()
        mine = data[: _later(len(data))]
        parts = _room(lengths, mine, usable.rank())
        yield _dist.all_gather(parts, mine, group=usable, async_op=True)
        return blocks, parts
    _fill(object_list, *_run(usable, rounds()))


@_replaces
def gather_object(theirs, obj, object_gather_list=None, dst=None, group=None, group_dst=None):
    usable = _usable(group)
    root = None if usable is None else _root(usable, dst, group_dst)
    if root is None or (usable.rank() == root) != bool(object_gather_list):
        return theirs(obj, object_gather_list, dst, group, group_dst)
    data, _ = _dump([obj])

    def rounds():
        blocks, lengths = yield from _exchange_blocks(data, usable)
        if not any(map(_later, lengths)):
            return blocks, ()
        mine = data[: _later(len(data))]
        parts = _room(lengths, mine, root) if usable.rank() == root else None
        yield _dist.gather(mine, parts, group=usable, group_dst=root, async_op=True)
        return blocks, parts
    arrived = _run(usable, rounds())
    if usable.rank() == root:
        _fill(object_gather_list, *arrived)


def _broadcast(block, data, group, root):
    """The second number of the block, and the payload, which is `data` at the root."""
    yield _dist.broadcast(block, group=group, group_src=root, async_op=True)
    length, count = _HEAD.unpack_from(block.numpy())
    if not _later(length):
        return count, _inline(block.numpy().data)
    data = _bytes(length) if data is None else data
    yield _dist.broadcast(data, group=group, group_src=root, async_op=True)
    return count, data.numpy().data


@_replaces
def broadcast_object_list(theirs, object_list, src=None, group=None, device=None, group_src=None):
    usable = _usable(group)
    root = None if usable is None else _root(usable, src, group_src)
    if root is None or not len(object_list) or (device is not None and _torch.device(device).type != "cpu"):
        return theirs(object_list, src, group, device, group_src)
    if usable.rank() == root:
        data, lengths = _dump(object_list, with_lengths=True)
        _run(usable, _broadcast(_block(data, len(lengths)), data, usable, root))
        return
    count, data = _run(usable, _broadcast(_bytes(_BLOCK), None, usable, root))
    if count != len(object_list):
        raise ValueError(
            f"anyccl: broadcast_object_list: object_list has {len(object_list)} objects, that of the source has {count}")
    at = 0
    for i, size in enumerate(_struct.unpack(f"={count}q", data[len(data) - 8 * count :])):
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
    blocks = parts = None
    if sends:
        data, lengths = _dump(scatter_object_input_list)
        longest, parts = max(lengths), data.split(lengths)
        blocks = [_block(part, longest) for part in parts]
    parts = parts and [part[: _later(len(part))] for part in parts]

    def rounds():
        block = _bytes(_BLOCK)
        yield _dist.scatter(block, blocks, group=usable, group_src=root, async_op=True)
        length, longest = _HEAD.unpack_from(block.numpy())
        data = parts[root] if sends else _bytes(_later(length))
        if _later(longest):
            yield _dist.scatter(data, parts, group=usable, group_src=root, async_op=True)
        return data.numpy() if len(data) else _inline(block.numpy().data)
    scatter_object_output_list[0] = _load(_run(usable, rounds()))


def replace_object_collectives() -> None:
    _replace(_replacements)
