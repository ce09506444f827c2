# torchrun --standalone --nproc-per-node 2 examples/torch/07_experts.py
"""Expert parallel: a mixture of experts, of which every rank has some.

A router picks two experts for each token. An all-to-all takes the tokens to their experts' ranks, another
brings the results back; backward takes the same ways. In two forms: dropless, where every rank sends as many
tokens as were routed there (uneven splits, exchanged beforehand), and with a capacity, where every expert has
the same number of places per rank: free ones are padded, and tokens that find none are dropped. Outputs and
gradients are those of a dense computation in one process.
"""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed._functional_collectives import all_to_all_single  # has a gradient

from example import assert_close, say, start

TOKENS, WIDTH, EXPERTS, TOP_K = 50, 16, 8, 2  # TOKENS: of each rank


class Mixture(nn.Module):
    """The router and all experts, the same in every call. A rank uses only its own experts."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.router = nn.Linear(WIDTH, EXPERTS)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(WIDTH, 32), nn.GELU(), nn.Linear(32, WIDTH)) for _ in range(EXPERTS))

    def route(self, tokens):
        """Returns each token's experts and their weights, both tokens x TOP_K."""
        gates, chosen = self.router(tokens).softmax(-1).topk(TOP_K)
        return chosen, gates / gates.sum(-1, keepdim=True)


def exchange(rows, receive=None, send=None):
    """The first send[0] rows go to rank 0, the next send[1] to rank 1; without numbers, all get the same."""
    return all_to_all_single(rows, receive, send, dist.group.WORLD)


def dropless(mixture, tokens):
    ranks, rank = dist.get_world_size(), dist.get_rank()
    chosen, gates = mixture.route(tokens)
    order = chosen.flatten().argsort(stable=True)  # by expert, so by rank as well
    counts = chosen.flatten().bincount(minlength=EXPERTS)
    counts_here = torch.empty_like(counts)  # from rank r for my expert e: at r * (my experts) + e
    dist.all_to_all_single(counts_here, counts)
    send = counts.view(ranks, -1).sum(1).tolist()
    receive = counts_here.view(ranks, -1).sum(1).tolist()

    mine = tokens[order // TOP_K]
    here = exchange(mine, receive, send)
    first = rank * EXPERTS // ranks
    expert_of = torch.arange(EXPERTS // ranks).repeat(ranks).repeat_interleave(counts_here)
    done = torch.zeros_like(here)
    for e in range(EXPERTS // ranks):
        places = (expert_of == e).nonzero().squeeze(1)
        done = done.index_copy(0, places, mixture.experts[first + e](here[places]))
    back = exchange(done, send, receive)

    return torch.zeros_like(tokens).index_add(0, order // TOP_K, back * gates.flatten()[order, None])


def with_capacity(mixture, tokens, capacity):
    """`capacity`: the number of tokens that an expert takes from one rank."""
    ranks, rank = dist.get_world_size(), dist.get_rank()
    chosen, gates = mixture.route(tokens)
    keep = kept(chosen, capacity)
    places = (place_in_queue(chosen) + chosen * capacity)[keep]
    token_of = torch.arange(len(tokens))[:, None].expand_as(chosen)[keep]

    padded = tokens.new_zeros(EXPERTS * capacity, WIDTH).index_copy(0, places, tokens[token_of])
    here = exchange(padded).view(ranks, -1, capacity, WIDTH)
    first = rank * EXPERTS // ranks
    done = torch.stack([mixture.experts[first + e](here[:, e]) for e in range(EXPERTS // ranks)], 1)
    back = exchange(done.reshape(-1, WIDTH))

    return torch.zeros_like(tokens).index_add(0, token_of, back[places] * gates[keep, None])


def place_in_queue(chosen):
    """For each choice: the number of this rank's tokens that chose that expert before it."""
    one_hot = nn.functional.one_hot(chosen.flatten(), EXPERTS)
    return (one_hot.cumsum(0) - one_hot).gather(1, chosen.flatten()[:, None]).view_as(chosen)


def kept(chosen, capacity):
    return place_in_queue(chosen) < capacity


def dense(mixture, tokens, capacity=TOKENS * TOP_K):
    """The same by computing every expert for every token."""
    chosen, gates = mixture.route(tokens)
    weight = torch.zeros(len(tokens), EXPERTS).scatter(1, chosen, gates * kept(chosen, capacity))
    everything = torch.stack([expert(tokens) for expert in mixture.experts], 1)
    return (weight[:, :, None] * everything).sum(1)


def main():
    backend = start().backend
    rank, ranks = dist.get_rank(), dist.get_world_size()
    assert EXPERTS % ranks == 0
    everyones = [torch.randn(TOKENS, WIDTH, generator=torch.Generator().manual_seed(r)) for r in range(ranks)]
    capacity = int(1.25 * TOKENS * TOP_K / EXPERTS)  # 1.25 is the usual capacity factor

    for name, layer, limit in ("dropless", dropless, {}), ("with a capacity", with_capacity, {"capacity": capacity}):
        mixture, reference = Mixture(), Mixture()
        tokens = everyones[rank].clone().requires_grad_()
        out = layer(mixture, tokens, **limit)
        out.square().sum().backward()

        expected_tokens = [t.clone().requires_grad_() for t in everyones]
        expected = [dense(reference, t, **limit) for t in expected_tokens]
        torch.cat(expected).square().sum().backward()
        assert_close(out, expected[rank], f"{name}: outputs")
        assert_close(tokens.grad, expected_tokens[rank].grad, f"{name}: gradients of the tokens")
        for e in range(rank * EXPERTS // ranks, (rank + 1) * EXPERTS // ranks):
            for got, right in zip(mixture.experts[e].parameters(), reference.experts[e].parameters(), strict=True):
                assert_close(got.grad, right.grad, f"{name}: gradients of expert {e}")

        dropped = sum((~kept(reference.route(t)[0], **limit)).sum().item() for t in everyones) if limit else 0
        assert bool(dropped) == bool(limit)
        say(f"{backend}, {name}: {ranks * TOKENS * TOP_K} choices to {EXPERTS} experts on {ranks} ranks, {dropped} "
            "dropped, outputs and gradients as of the dense computation")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
