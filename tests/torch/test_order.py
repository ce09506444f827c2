"""Operations on one tensor without a wait between them: each sees what the earlier ones made, in every layout."""

from random import Random

import pytest
import torch
import torch.distributed as dist
from ranks import run_ranks


def view_of(base, random):
    """Some elements of a square tensor, in one of many layouts."""
    first, second = sorted(random.sample(range(len(base) + 1), 2))
    return random.choice([
        lambda: base[first:second], lambda: base[:, first:second], lambda: base.t()[first:second], lambda: base[:, first],
        lambda: base[first::2, ::3], lambda: base[first:second, 1].unsqueeze(0), lambda: base.view(-1)[first:30:4],
    ])()


def one_operation(random, size):
    """A call of a rank, and the same for the tensors of all ranks at once."""
    place, root = random.getstate(), random.randrange(size)
    view_of(torch.zeros(6, 6), random)

    def view(base):
        same = type(random)()
        same.setstate(place)
        return view_of(base, same)

    def all_reduce(base, **how):
        return dist.all_reduce(view(base), **how)

    def all_reduce_of_all(bases):
        total = sum(view(base).clone() for base in bases)
        for base in bases:
            view(base).copy_(total)

    def broadcast(base, **how):
        return dist.broadcast(view(base), root, **how)

    def broadcast_of_all(bases):
        for base in bases:
            view(base).copy_(view(bases[root]).clone())

    def gather(base, **how):
        return dist.all_gather([base[:, r] for r in range(size)], base[:, 5], **how)

    def gather_of_all(bases):
        columns = [base[:, 5].clone() for base in bases]
        for base in bases:
            for r in range(size):
                base[:, r] = columns[r]

    def exchange(base, **how):
        parts = list(base[2].chunk(size))
        return dist.all_to_all(parts, parts, **how)

    def exchange_of_all(bases):
        rows = [base[2].clone().chunk(size) for base in bases]
        for me, base in enumerate(bases):
            for r, part in enumerate(base[2].chunk(size)):
                part.copy_(rows[r][me])
    return random.choice([(all_reduce, all_reduce_of_all), (broadcast, broadcast_of_all), (gather, gather_of_all),
                          (exchange, exchange_of_all)])


@pytest.mark.parametrize("size", [2, 3])
def test_operations_on_one_tensor_see_what_the_earlier_ones_made(size):
    """Whatever its layout, and in which order ever they are waited for: copies keep the order of the calls, too."""
    def body(rank):
        for seed in range(40):
            random = Random(seed)
            bases = [torch.arange(36).view(6, 6) * (r + 1) for r in range(size)]
            mine, works = bases[rank].clone(), []
            for _ in range(12):
                call, all_at_once = one_operation(random, size)
                all_at_once(bases)
                if random.random() < 0.8:
                    works.append(call(mine, async_op=True))
                else:
                    call(mine)
                while works and random.random() < 0.2:
                    works.pop(random.randrange(len(works))).wait()
            random.shuffle(works)
            for work in works:
                work.wait()
            assert mine.equal(bases[rank]), seed
    run_ranks(size, body)


def test_columns_do_not_wait_for_each_other():
    """An operation that others have not joined keeps those of other elements from nothing."""
    def body(rank):
        x = torch.ones(4, 4, dtype=torch.int64)
        others = dist.new_group([0, 1])
        first = dist.all_reduce(x[:, 0], async_op=True) if rank == 0 else None
        dist.all_reduce(x[:, 1], group=others)
        beside = dist.all_reduce(x[:, 2], async_op=True) if rank == 0 else None  # issued at once
        dist.barrier(others)
        if rank == 1:
            dist.all_reduce(x[:, 0])
            dist.all_reduce(x[:, 2])
        else:
            first.wait()
            beside.wait()
        assert x.tolist() == [[2, 2, 2, 1]] * 4
    run_ranks(2, body)
