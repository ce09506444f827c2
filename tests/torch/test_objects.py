"""The object collectives of torch on anyccl's groups: torch's results and errors, without its padding."""

import datetime
import os
import pickle
import resource
import signal
import subprocess
import sys
import threading
import time
import types

import pytest
import torch
import torch.distributed as dist
from ranks import count_of_torchs_own, run_ranks

import anyccl.torch

c10d = dist.distributed_c10d
NAMES = ["all_gather_object", "gather_object", "broadcast_object_list", "scatter_object_list"]
INLINE = 488  # bytes that travel in the first round


def text_of(pickled_bytes):
    """A text whose pickle has that many bytes."""
    text = "x" * (pickled_bytes - len(pickle.dumps("x" * 300)) + 300)
    assert len(pickle.dumps(text)) == pickled_bytes
    return text


def use_all(objects, rank, group=None):
    """What each of the four brings on this rank, where rank r has objects[r]."""
    size = len(objects)
    everyone, at_1 = [None] * size, [None] * size if rank == 1 else None
    dist.all_gather_object(everyone, objects[rank], group=group)
    dist.gather_object(objects[rank], at_1, group_dst=1, group=group)
    spread = list(objects) if rank == 1 else [None] * size
    dist.broadcast_object_list(spread, group_src=1, group=group)
    mine = [None, "left alone"]
    dist.scatter_object_list(mine, objects if rank == 1 else None, group_src=1, group=group)
    return everyone, at_1, spread, mine


@pytest.mark.parametrize("objects", [
    [None, 1, "two"],
    [None, "x" * 100_000, {"a": 1}],
    [text_of(INLINE), text_of(INLINE + 1), text_of(INLINE - 1)],
    [text_of(INLINE)] * 3,
    [b"a" * 3_000_000, b"b" * 5_000_000, b"c" * 777],
], ids=["small", "one large", "around a block", "a block", "large"])
def test_every_rank_gets_the_objects(objects):
    def body(rank):
        everyone, at_1, spread, mine = use_all(objects, rank)
        assert everyone == spread == objects and mine == [objects[rank], "left alone"]
        assert at_1 == (objects if rank == 1 else None)
    run_ranks(3, body)


CALLS = {
    "all_gather": lambda objects, rank: dist.all_gather_object([None] * 2, objects[rank]),
    "gather": lambda objects, rank: dist.gather_object(objects[rank], [None] * 2 if rank == 1 else None, dst=1),
    "broadcast": lambda objects, rank: dist.broadcast_object_list(list(objects), src=0),
    "scatter": lambda objects, rank: dist.scatter_object_list([None], objects if rank == 0 else None, src=0),
}


def wait_for_exchange(main):
    """Until the main thread is in the exchange."""
    while sys._current_frames()[main].f_code is not anyccl.torch._objects._exchange.__code__:
        time.sleep(0.001)


def interrupt_in_exchange(main):
    """As Ctrl-C, a moment after its begin."""
    wait_for_exchange(main)
    time.sleep(0.1)
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("size", [1, 100_000])
@pytest.mark.parametrize("name", CALLS)
def test_an_interrupt_while_objects_travel_is_no_loss(name, size):
    """As Ctrl-C: the other rank gets what it waits for, and the next calls are in their places."""
    def body(rank):
        objects = [b"x" * size] * 2
        store = dist.distributed_c10d._get_default_store()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if rank == 1:
            threading.Thread(target=interrupt_in_exchange, args=(threading.get_ident(),), daemon=True).start()
            with pytest.raises(KeyboardInterrupt):
                CALLS[name](objects, 1)
            store.set("interrupted", "1")
        else:
            store.wait(["interrupted"])
            CALLS[name](objects, 0)
        assert use_all([1, 2], rank)[0] == [1, 2]
    run_ranks(2, body)


def test_objects_beside_a_thread_that_reduces():
    """Whatever comes first, the rounds of objects are one place in the order of calls."""
    def body(rank):
        store, x, objects = c10d._get_default_store(), torch.ones(3), [None, None]

        def reduce(main):
            wait_for_exchange(main)
            time.sleep(0.1)  # the first round has its place, and waits for rank 1
            work = dist.all_reduce(x, async_op=True)
            store.set("issued", "")
            work.wait()
        if rank == 0:
            thread = threading.Thread(target=reduce, args=(threading.get_ident(),))
            thread.start()
            threading.Thread(target=lambda: (time.sleep(0.5), store.set("issued", "")), daemon=True).start()
            dist.all_gather_object(objects, b"x" * 100_000)
            thread.join()
        else:
            store.wait(["issued"])
            dist.all_gather_object(objects, b"x" * 100_000)
            dist.all_reduce(x)
        assert objects == [b"x" * 100_000] * 2 and x.tolist() == [2, 2, 2]
    run_ranks(2, body)


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
@pytest.mark.parametrize("name", CALLS)
def test_an_object_that_cannot_be_pickled_is_an_error_of_all(name, error):
    """Also where an interrupt comes meanwhile. Nobody waits for it."""
    class Bad:
        def __reduce__(self):
            raise error("not\nthis one")

    def body(rank):
        bad = 1 if name == "gather" else 0
        with pytest.raises(error if rank == bad else dist.DistBackendError) as info:
            CALLS[name]([Bad() if r == bad else "x" * 1000 for r in range(2)], rank)
        if rank != bad:
            assert f"rank {bad} cannot send its object: {error.__name__}: not?this one" in str(info.value)
        assert use_all([1, 2], rank)[0] == [1, 2]
    run_ranks(2, body)


def test_an_interrupted_exchange_is_waited_for_when_its_group_ends():
    def body(rank):
        signal.signal(signal.SIGINT, signal.default_int_handler)
        store, got = c10d._get_default_store(), [None, None]
        if rank == 1:
            threading.Thread(target=interrupt_in_exchange, args=(threading.get_ident(),), daemon=True).start()
            with pytest.raises(KeyboardInterrupt):
                dist.all_gather_object(got, "x" * 10_000)
            store.set("interrupted", "")
        else:
            store.wait(["interrupted"])
            time.sleep(0.2)
            dist.all_gather_object(got, "y")
            assert got == ["y", "x" * 10_000]
    run_ranks(2, body)


def test_tensors_travel_in_objects():
    def body(rank):
        objects = [{"w": torch.arange(50_000.0) + r, "empty": torch.empty(0)} for r in range(2)]
        everyone, _, spread, _ = use_all(objects, rank)
        for got in (everyone, spread):
            assert all(got[r]["w"].equal(objects[r]["w"]) and got[r]["empty"].numel() == 0 for r in range(2))
        everyone[0]["w"].add_(1)  # it is this rank's own
    run_ranks(2, body)


def test_tensors_of_all_kinds_arrive_as_with_torch():
    """Plain ones are pickled without torch.save."""
    whole, named = torch.arange(9.0), torch.ones(3)
    named.label = "x"
    objects = [
        torch.arange(6.0).view(2, 3), torch.tensor(3), torch.empty(0), torch.empty(2, 0, 3), torch.tensor([True, False]),
        torch.ones(3, dtype=torch.bfloat16), torch.ones(2, dtype=torch.complex64), whole[2:5], whole.view(3, 3).t(),
        whole.as_strided((2, 1, 2), (4, 100, 2), 1), torch.ones(2, requires_grad=True), torch.nn.Parameter(whole), named,
        torch.ones(2, dtype=torch.complex64).conj(), torch.sparse_coo_tensor([[0]], [1.0], [3]),
    ]

    def facts(x):
        dense = x.layout is torch.strided
        return (type(x), x.dtype, x.shape, x.requires_grad, x.layout, x.is_conj(), getattr(x, "label", None), str(x),
                dense and (x.stride(), x.storage_offset(), x.untyped_storage().nbytes()))

    def body(rank):
        everyone = use_all([objects, [named, named]], rank)[0]
        for got, sent in zip(everyone[0], objects):
            assert facts(got) == facts(pickle.loads(pickle.dumps(sent)))
        assert everyone[1][0] is everyone[1][1]
    run_ranks(2, body)


def test_ranks_of_the_whole_job_name_the_root():
    def body(rank):
        group = dist.new_group([1, 2])
        if rank == 0:
            return
        got = [None] * 2 if rank == 2 else None
        dist.gather_object(rank, got, dst=2, group=group)
        assert got == ([1, 2] if rank == 2 else None)
        got = [rank]
        dist.broadcast_object_list(got, src=2, group=group)
        assert got == [2]
        dist.scatter_object_list(got, ["one", "two"] if rank == 1 else None, src=1, group=group)
        assert got == ["one" if rank == 1 else "two"]
    run_ranks(3, body)


def test_a_rank_outside_is_warned_and_its_list_left_alone():
    def body(rank):
        group = dist.new_group([0])
        got = ["mine"]
        if rank == 1:
            with pytest.warns(UserWarning, match="all_gather_object on global rank 1 which does not belong"):
                dist.all_gather_object(got, "x", group)
            assert got == ["mine"]
        else:
            dist.all_gather_object(got, "x", group)
            assert got == ["x"]
    run_ranks(2, body)


def test_wrong_arguments_raise_what_torch_raises():
    """On all ranks, and nothing has been sent."""
    calls = [
        lambda d, rank: d["all_gather_object"]([None] * 2, lambda: 0),
        lambda d, rank: d["gather_object"](1, [None] * 2, dst=0, group_dst=0),
        lambda d, rank: d["gather_object"](1, None if rank == 0 else [None] * 2),
        lambda d, rank: d["broadcast_object_list"]([1], src=7),
        lambda d, rank: d["scatter_object_list"]([], [1, 2]),
        lambda d, rank: d["scatter_object_list"]([None], None, src=rank),
        lambda d, rank: d["scatter_object_list"]([None], [], src=rank),
    ]

    def body(rank):
        ours = {name: getattr(dist, name) for name in NAMES}
        theirs = {name: function.__wrapped__ for name, function in ours.items()}
        for i, call in enumerate(calls):
            raised = []
            for functions in (ours, theirs):
                with pytest.raises(Exception) as info:
                    call(functions, rank)
                raised.append((info.type, str(info.value)))
            assert raised[0] == raised[1], i
        use_all([1, 2], rank)
    run_ranks(2, body)


def test_too_few_inputs_of_a_scatter_are_counted():
    def body(rank):
        with pytest.raises(ValueError if rank == 0 else dist.DistBackendError,
                           match="the input list has 1 objects, but needs one for each of 2 ranks"):
            dist.scatter_object_list([None], ["x"] if rank == 0 else None, src=0)
        use_all([1, 2], rank)
    run_ranks(2, body)


@pytest.mark.parametrize("size", [1, 10_000])
def test_lists_of_different_lengths_are_named(size):
    def body(rank):
        if rank == 0:
            dist.broadcast_object_list(["x" * size, 2])
        else:
            with pytest.raises(ValueError, match="object_list has 3 objects, that of the source has 2"):
                dist.broadcast_object_list([None] * 3)
        use_all([1, 2], rank)
    run_ranks(2, body)


def test_an_empty_list_is_a_list_of_another_length():
    def body(rank):
        for source, other, text in [([], [None], "has 1 objects, that of the source has 0"),
                                    (["x"], [], "has 0 objects, that of the source has 1")]:
            if rank == 0:
                dist.broadcast_object_list(source)
            else:
                with pytest.raises(ValueError, match=text):
                    dist.broadcast_object_list(other)
        dist.broadcast_object_list([])
        use_all([1, 2], rank)
    run_ranks(2, body)


def test_a_list_that_is_too_short_is_filled_first():
    def body(rank):
        got = [None]
        with pytest.raises(IndexError):
            dist.all_gather_object(got, rank)
        assert got == [0]
        use_all([1, 2], rank)
    run_ranks(2, body)


def test_the_pickler_that_a_program_gives_torch_is_used():
    class Pickler(pickle.Pickler):
        def persistent_id(self, obj):
            return "replaced" if obj == "object" else None

    class Unpickler(pickle.Unpickler):
        def persistent_load(self, name):
            return name

    def body(rank):
        c10d._pickler, c10d._unpickler = Pickler, Unpickler
        assert use_all(["object", "x"], rank)[0] == ["replaced", "x"]
    run_ranks(2, body)


def test_a_large_object_is_not_paid_for_by_all():
    """On each rank: the pickles of all, and the objects themselves."""
    def body(rank):
        million = 1_000_000
        mine = b"x" * (40 * million if rank == 0 else 1)
        got = [None] * 4
        dist.all_gather_object(got, 1)
        with open("/proc/self/statm") as file:
            before = int(file.read().split()[1]) * resource.getpagesize()
        dist.all_gather_object(got, mine)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
        # torch's own: 4 * 40 received
        assert grown < 95 * million, grown
    run_ranks(4, body)


def test_other_groups_are_left_to_torch():
    def body(rank):
        gloo = dist.new_group([0, 1], backend="gloo")
        got = [None] * 2
        assert count_of_torchs_own(lambda: dist.all_gather_object(got, rank, gloo)) == 1 and got == [0, 1]
        assert count_of_torchs_own(lambda: dist.all_gather_object(got, rank)) == 0 and got == [0, 1]
        assert count_of_torchs_own(lambda: use_all([3, 4], rank, gloo)) >= 2
        assert count_of_torchs_own(lambda: use_all([3, 4], rank)) == 0
        dist.barrier(gloo)
    run_ranks(2, body)


def test_modules_that_imported_them_by_name_get_them_too():
    def body(rank):
        for name in NAMES:
            theirs = getattr(dist, name).__wrapped__
            for module in (dist, c10d):
                setattr(module, name, theirs)
        early = sys.modules["early"] = types.ModuleType("early")
        early.all_gather_object = dist.all_gather_object
        early.gather_object = mine = object()
        anyccl.torch._objects.replace_object_collectives()
        assert early.all_gather_object is dist.all_gather_object is c10d.all_gather_object
        assert hasattr(early.all_gather_object, "__wrapped__") and early.gather_object is mine
    run_ranks(1, body)


def test_a_function_with_other_arguments_stays():
    def body(rank):
        def all_gather_object(object_list, obj, group=None, weights_only=True):
            pass
        for module in (dist, c10d):
            module.all_gather_object = all_gather_object
        anyccl.torch._objects.replace_object_collectives()
        assert dist.all_gather_object is all_gather_object
    run_ranks(1, body)


def test_the_variable_leaves_them_to_torch():
    program = "import anyccl.torch, torch.distributed as d; print(*(hasattr(getattr(d, n), '_anyccl') for n in %r))" % NAMES
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=90,
                          env={**os.environ, "ANYCCL_TORCH_OBJECTS": "0"})
    assert done.stdout.split() == ["False"] * 4, done.stderr


def test_a_missing_rank_ends_in_the_time_limit():
    def body(rank):
        if rank == 0:
            with pytest.raises(dist.DistBackendError, match="Timed out|timed out"):
                dist.all_gather_object([None] * 2, 1)
            c10d._get_default_store().set("over", "")
        else:
            c10d._get_default_store().wait(["over"], datetime.timedelta(seconds=50))
    run_ranks(2, body, timeout_s=3)
