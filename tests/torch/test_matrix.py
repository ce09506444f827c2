"""Every operation with every type, operator and layout, blocking and not, in the world and in other groups:
each cell gives what was computed locally, or raises and says what it is about."""

import itertools
import resource

import pytest
import torch
import torch.distributed as dist
from cells import FACTOR, OPAQUE, OPERATORS, REDUCIBLE, is_refused, make, operator, reduced, same, strided
from ranks import run_ranks

SIZES = [0, 1, 7]
RANKS = 3


class Cell:
    """One call: `me` of `ranks` (numbers in the group), elements per rank, and how."""

    def __init__(self, group, numel, dtype, is_async, contiguous):
        self.group, self.numel, self.dtype = group, numel, dtype
        self.is_async, self.contiguous = is_async, contiguous
        self.me, self.ranks = dist.get_rank(group), dist.get_world_size(group)

    def lay(self, tensor):
        return tensor.clone() if self.contiguous else strided(tensor)

    def make(self, rank, salt=0, numel=None):
        return make(rank, self.numel if numel is None else numel, self.dtype, salt)

    def mine(self, salt=0, numel=None):
        return self.lay(self.make(self.me, salt, numel))

    def empty(self, numel=None):
        return self.lay(self.make(7, 1, self.numel if numel is None else numel))

    def call(self, function, *arguments, **options):
        work = function(*arguments, group=self.group, async_op=self.is_async, **options)
        if self.is_async:
            work.wait()


def all_reduce(c, op):
    x = c.mine()
    options = dist.AllreduceOptions()  # not by dist.all_reduce, which turns complex into real numbers
    options.reduceOp = operator(op)
    options.asyncOp = c.is_async
    c.group.allreduce([x], options).wait()
    return [(x, reduced([c.make(r) for r in range(c.ranks)], op))]


def all_reduce_coalesced(c, op):
    xs = [c.mine(salt) for salt in range(3)]
    options = dist.AllreduceCoalescedOptions()
    options.reduceOp = operator(op)
    options.asyncOp = c.is_async
    c.group.allreduce_coalesced(xs, options).wait()
    return [(x, reduced([c.make(r, salt) for r in range(c.ranks)], op)) for salt, x in enumerate(xs)]


def reduce(c, op):
    x, root = c.mine(), c.ranks - 1
    options = dist.ReduceOptions()
    options.reduceOp, options.rootRank, options.asyncOp = operator(op), root, c.is_async
    c.group.reduce([x], options).wait()
    expected = reduced([c.make(r) for r in range(c.ranks)], op) if c.me == root else c.make(c.me)
    return [(x, expected)]


def reduce_scatter(c, op):
    x = [c.mine(r, c.numel + r) for r in range(c.ranks)]
    out = c.empty(c.numel + c.me)
    options = dist.ReduceScatterOptions()
    options.reduceOp, options.asyncOp = operator(op), c.is_async
    c.group.reduce_scatter([out], [x], options).wait()
    return [(out, reduced([c.make(r, c.me, c.numel + c.me) for r in range(c.ranks)], op))]


def reduce_scatter_tensor(c, op):
    x, out = c.mine(0, c.numel * c.ranks), c.empty()
    options = dist.ReduceScatterOptions()
    options.reduceOp, options.asyncOp = operator(op), c.is_async
    c.group._reduce_scatter_base(out, x, options).wait()
    whole = reduced([c.make(r, 0, c.numel * c.ranks) for r in range(c.ranks)], op)
    return [(out, whole[c.me * c.numel:(c.me + 1) * c.numel])]


def broadcast(c):
    x, root = c.mine(), c.ranks - 1
    c.call(dist.broadcast, x, group_src=root)
    return [(x, c.make(root))]


def all_gather(c):
    outs = [c.empty() for _ in range(c.ranks)]
    c.call(dist.all_gather, outs, c.mine())
    return [(out, c.make(r)) for r, out in enumerate(outs)]


def all_gather_uneven(c):
    outs = [c.empty(c.numel + r) for r in range(c.ranks)]
    c.call(dist.all_gather, outs, c.mine(0, c.numel + c.me))
    return [(out, c.make(r, 0, c.numel + r)) for r, out in enumerate(outs)]


def all_gather_views(c):
    out = c.empty(c.numel * c.ranks)
    c.call(dist.all_gather, list(out.chunk(c.ranks)) if c.numel else [out] * c.ranks, c.mine())
    return [(out, torch.cat([c.make(r) for r in range(c.ranks)]))]


def all_gather_single(c):
    out = c.empty(c.numel * c.ranks)
    c.call(dist.all_gather_single, out, c.mine())
    return [(out, torch.cat([c.make(r) for r in range(c.ranks)]))]


def all_gather_in_place(c):
    out = c.empty(c.numel * c.ranks)
    mine = out[c.me * c.numel:(c.me + 1) * c.numel]
    mine.copy_(c.make(c.me))
    c.call(dist.all_gather_single, out, mine)
    return [(out, torch.cat([c.make(r) for r in range(c.ranks)]))]


def all_gather_coalesced(c):
    outs = [[c.empty(), c.empty(5)] for _ in range(c.ranks)]
    options = dist.distributed_c10d.AllgatherOptions()
    options.asyncOp = c.is_async
    c.group.allgather_coalesced(outs, [c.mine(), c.mine(1, 5)], options).wait()
    return [pair for r, (a, b) in enumerate(outs) for pair in ((a, c.make(r)), (b, c.make(r, 1, 5)))]


def gather(c):
    root = c.ranks - 1
    outs = [c.empty() for _ in range(c.ranks)] if c.me == root else None
    c.call(dist.gather, c.mine(), outs, group_dst=root)
    return [(out, c.make(r)) for r, out in enumerate(outs or [])]


def scatter(c):
    root = c.ranks - 1
    ins = [c.lay(c.make(root, r)) for r in range(c.ranks)] if c.me == root else None
    out = c.empty()
    c.call(dist.scatter, out, ins, group_src=root)
    return [(out, c.make(root, c.me))]


def all_to_all(c):
    outs = [c.empty(c.numel + r) for r in range(c.ranks)]
    c.call(dist.all_to_all, outs, [c.mine(r, c.numel + c.me) for r in range(c.ranks)])
    return [(out, c.make(r, c.me, c.numel + r)) for r, out in enumerate(outs)]


def all_to_all_single(c):
    out = c.empty(c.numel * c.ranks)
    c.call(dist.all_to_all_single, out, c.mine(0, c.numel * c.ranks))
    begin, end = c.me * c.numel, (c.me + 1) * c.numel
    return [(out, torch.cat([c.make(r, 0, c.numel * c.ranks)[begin:end] for r in range(c.ranks)]))]


def all_to_all_uneven(c):
    """Rank i sends numel + j elements to rank j, of which rank 0 gets none of rank 1."""
    def count(i, j):
        return 0 if (i, j) == (1, 0) else c.numel + j

    def split(i):
        return [count(i, j) for j in range(c.ranks)]
    outs = [count(i, c.me) for i in range(c.ranks)]
    out = c.empty(sum(outs))
    c.call(dist.all_to_all_single, out, c.mine(0, sum(split(c.me))), outs, split(c.me))
    expected = [c.make(i, 0, sum(split(i))).split(split(i))[c.me] for i in range(c.ranks)]
    return [(out, torch.cat(expected))]


def send_recv(c):
    """Round the ring, and from whoever sends."""
    after, before = (c.me + 1) % c.ranks, (c.me - 1) % c.ranks
    out, anyone = c.empty(), c.empty()
    works = [c.group.recv([out], before, 3), c.group.recv_anysource([anyone], 4),
             c.group.send([c.mine()], after, 3), c.group.send([c.mine(1)], after, 4)]
    for work in works if c.is_async else reversed(works):
        work.wait()
    assert works[1]._source_rank() == before
    return [(out, c.make(before)), (anyone, c.make(before, 1))]


REDUCTIONS = [all_reduce, all_reduce_coalesced, reduce, reduce_scatter, reduce_scatter_tensor]
MOVES = [broadcast, all_gather, all_gather_uneven, all_gather_views, all_gather_single, all_gather_in_place,
         all_gather_coalesced, gather, scatter, all_to_all, all_to_all_single, all_to_all_uneven, send_recv]


def try_cell(function, cell, *op):
    """None, or what is wrong."""
    refused = bool(op) and is_refused(*op, cell.dtype)
    name = (f"{function.__name__} {' '.join(op)} {cell.dtype} {cell.numel} elements, "
            f"{'async' if cell.is_async else 'sync'}, {'' if cell.contiguous else 'not '}contiguous")
    try:
        pairs = function(cell, *op)
    except Exception as error:  # noqa: B902  which one is what is looked at
        if refused and "anyccl: " in str(error):
            return None
        return f"{name}: {type(error).__name__}: {error}"
    if refused:
        return f"{name}: was not refused"
    for got, expected in pairs:
        if not same(got, expected):
            return f"{name}: got {got}, not {expected}"
    return None


def reductions(group, dtypes):
    for function, dtype, op in itertools.product(REDUCTIONS, dtypes, OPERATORS):
        for numel, is_async, contiguous in itertools.product(SIZES, (False, True), (True, False)):
            yield try_cell(function, Cell(group, numel, dtype, is_async, contiguous), op)


def moves(group, dtypes):
    for function, dtype in itertools.product(MOVES, dtypes):
        for numel, is_async, contiguous in itertools.product(SIZES, (False, True), (True, False)):
            yield try_cell(function, Cell(group, numel, dtype, is_async, contiguous))


def check(trouble):
    trouble = [text for text in trouble if text is not None]
    assert not trouble, "\n".join([f"{len(trouble)} cells:"] + trouble[:20])


def test_large_ones():
    """Lent from where they lie, in several tiles, and pieces of different sizes."""
    def body(rank):
        def cells():
            group = dist.group.WORLD
            for numel, is_async in itertools.product((5000, 700001), (False, True)):
                for function in REDUCTIONS:
                    yield try_cell(function, Cell(group, numel, torch.float32, is_async, True), "SUM")
                for function in MOVES:
                    yield try_cell(function, Cell(group, numel, torch.float32, is_async, True))
            for function in REDUCTIONS:
                yield try_cell(function, Cell(group, 300001, torch.bfloat16, True, False), "PREMUL_SUM")
        check(cells())
    run_ranks(RANKS, body)


@pytest.mark.parametrize("numel", [3, 30000])
def test_inputs_and_outputs_that_overlap(numel):
    """Not as in place: the result is as if they lay apart."""
    def body(rank):
        def mine(count=numel, salt=0):
            return make(rank, count, torch.float32, salt)

        room = torch.zeros(RANKS * numel + 1)
        room[1:1 + numel] = mine()
        dist.all_gather_single(room[:-1], room[1:1 + numel])
        everyone = torch.cat([make(r, numel, torch.float32) for r in range(RANKS)])
        assert room[:-1].equal(everyone)

        room[1:1 + numel] = mine()
        dist.all_gather(list(room[:-1].chunk(RANKS)), room[1:1 + numel])
        assert room[:-1].equal(everyone)

        whole = reduced([make(r, RANKS * numel, torch.float32) for r in range(RANKS)], "SUM")
        part = whole[rank * numel:(rank + 1) * numel]
        for scattered in (lambda out, x: dist.reduce_scatter_single(out, x),
                          lambda out, x: dist.reduce_scatter(out, list(x.chunk(RANKS)))):
            room[:-1] = mine(RANKS * numel)
            out = room[1:1 + numel]
            scattered(out, room[:-1])
            assert out.equal(part)

        swapped = torch.cat([make(r, RANKS * numel, torch.float32)[rank * numel:(rank + 1) * numel]
                             for r in range(RANKS)])
        for exchange in (lambda out, x: dist.all_to_all_single(out, x),
                         lambda out, x: dist.all_to_all_single(out, x, [numel] * RANKS, [numel] * RANKS),
                         lambda out, x: dist.all_to_all(list(out.chunk(RANKS)), list(x.chunk(RANKS)))):
            for begin in (0, 1):
                room[:-1] = mine(RANKS * numel)
                out = room[begin:begin + RANKS * numel]
                exchange(out, room[:-1])
                assert out.equal(swapped), begin

        room[:-1] = mine(RANKS * numel)
        pieces, out = list(room[:-1].chunk(RANKS)), room[1:1 + numel]
        dist.scatter(out, pieces if rank == 0 else None)
        assert out.equal(make(0, RANKS * numel, torch.float32)[rank * numel:(rank + 1) * numel])
        room[1:1 + numel] = mine()
        dist.gather(room[1:1 + numel], list(room[:-1].chunk(RANKS)) if rank == 0 else None)
        assert rank != 0 or room[:-1].equal(everyone)
    run_ranks(RANKS, body)


def test_conjugated_and_negated_views():
    def body(rank):
        group, x = dist.group.WORLD, make(rank, 50, torch.complex64)
        everyone = [make(r, 50, torch.complex64) for r in range(RANKS)]
        assert x.conj().is_conj() and x.conj().imag.is_neg()
        outs = [torch.zeros(50, dtype=torch.complex64).conj() for _ in range(RANKS)]
        group.allgather([outs], [x.conj()]).wait()  # dist.all_gather makes real numbers of them
        assert all(out.equal(one.conj()) for out, one in zip(outs, everyone))
        outs = [torch.zeros(50) for _ in range(RANKS)]
        dist.all_gather(outs, x.conj().imag)
        assert all(out.equal(-one.imag) for out, one in zip(outs, everyone))
        backend = group._get_backend(torch.device("cpu"))  # the dispatcher hands copies of these on
        y = x.clone()
        options = dist.BroadcastOptions()
        options.rootRank = 1
        backend.broadcast([y.conj()], options).wait()
        assert y.equal(everyone[1])
        z = x.clone().conj().imag
        backend.allreduce([z]).wait()
        assert z.equal(-sum(one.imag for one in everyone))
    run_ranks(RANKS, body)


@pytest.mark.parametrize("part", range(3))
def test_reductions_in_the_world(part):
    def body(rank):
        check(reductions(dist.group.WORLD, (REDUCIBLE + OPAQUE)[part::3]))
    run_ranks(RANKS, body)


def test_moves_in_the_world():
    def body(rank):
        check(moves(dist.group.WORLD, REDUCIBLE + OPAQUE))
    run_ranks(RANKS, body)


def test_a_subset_and_a_group_of_one():
    def body(rank):
        pair, alone = dist.new_group([2, 0]), dist.new_group([1])
        group = alone if rank == 1 else pair
        check(reductions(group, [torch.float32, torch.int64]))
        check(moves(group, [torch.float32, torch.bool]))
    run_ranks(RANKS, body)


def test_overlapping_groups_in_opposite_orders():
    """Ranks 0 and 1 use two groups in opposite orders, without waiting in between."""
    def body(rank):
        groups = [dist.new_group([0, 1]), dist.new_group([0, 1, 2])]
        for round_ in range(50):
            order = [0, 1] if (rank + round_) % 2 else [1, 0]
            works, results = [], {}
            for g in order:
                if rank not in dist.get_process_group_ranks(groups[g]):
                    continue
                results[g] = torch.full((round_ + 1,), float(rank + 1))
                works.append(dist.all_reduce(results[g], group=groups[g], async_op=True))
            for work in works:
                work.wait()
            for g, x in results.items():
                assert x.eq(3 if g == 0 else 6).all()
    run_ranks(RANKS, body)


def test_reduce_scatter_of_tensors_that_lie_far_apart():
    """What a factor is multiplied into takes no room for what is between them."""
    def body(rank):
        far = torch.empty(1 << 31, dtype=torch.uint8).view(torch.float32)
        with open("/proc/self/statm") as file:
            now = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + (1 << 30),) * 2)
        ins, out = [far[:3], far[1000:1000], far[-2:]], torch.empty([3, 0, 2][rank])
        for x in ins:
            x.fill_(rank + 1)
        dist.reduce_scatter(out, ins, op=operator("PREMUL_SUM"))
        assert out.eq(6 * FACTOR).all()
        dist.reduce_scatter(out, ins, op=operator("AVG"))
        assert out.eq(2).all()
    run_ranks(3, body)


def test_an_empty_part_of_the_output_as_input():
    def body(rank):
        buffer = torch.full((4,), -1.0)
        sizes = [4, 0]  # rank 0 sends nothing and gets all
        if rank == 0:
            dist.all_to_all_single(buffer, buffer[:0], [0, 4], [0, 0])
            assert buffer.eq(7).all()
        else:
            dist.all_to_all_single(buffer[:0], torch.full((4,), 7.0), [0, 0], sizes)
        x = torch.full((4,), 5.0)
        if rank == 0:
            dist.all_to_all_single(x[:0], x, [0, 0], [0, 4])
        else:
            y = torch.zeros(4)
            dist.all_to_all_single(y, x[:0], sizes, [0, 0])
            assert y.eq(5).all()
    run_ranks(2, body)
