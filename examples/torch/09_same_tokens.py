# torchrun --standalone --nproc-per-node 8 examples/torch/09_same_tokens.py
"""Tensor parallel decoding with the same logits, to the bit, for 1, 2, 4 and 8 ranks.

As usual a rank multiplies its whole part of a layer at once, and all_reduce adds up what is rounded to bfloat16: the
shapes of the products and the number of roundings follow from the number of ranks, so logits differ, and tokens in time.

Here a layer is cut into eight leaves, however many ranks there are, and a rank has 8/n of them. Each leaf is multiplied on its own, in the
same shape everywhere. Partial sums stay in float32, and all_reduce_leaves adds up the leaves of all ranks by one tree, which
does not depend on the number of ranks (docs/numbers/reproducibility.md). The result is rounded to bfloat16 once.
"""

import hashlib

import torch
import torch.distributed as dist
from torch.nn.functional import gelu, layer_norm, scaled_dot_product_attention

from anyccl.torch import all_reduce_leaves

from example import parser, say, start

LEAVES, WIDTH, LAYERS, VOCABULARY = 8, 256, 4, 256
HEAD = WIDTH // LEAVES  # a head is a leaf


def random_weights():
    """Of each layer and leaf: query, key, value, out, up, down; then the last layer by leaves, and the embedding."""
    torch.manual_seed(1)
    matrix = lambda rows, columns: (torch.randn(rows, columns) * rows ** -0.5).bfloat16()
    leaf = lambda: [matrix(WIDTH, HEAD) for _ in range(3)] + [
        matrix(HEAD, WIDTH), matrix(WIDTH, 4 * HEAD), matrix(4 * HEAD, WIDTH)]
    layers = [[leaf() for _ in range(LEAVES)] for _ in range(LAYERS)]
    return layers, [matrix(WIDTH, VOCABULARY // LEAVES) for _ in range(LEAVES)], matrix(VOCABULARY, WIDTH) * 16


def joined(leaves):
    """The usual parts of a rank: its leaves side by side."""
    by_kind = zip(*leaves)
    return [torch.cat(kind, 1 if i in (0, 1, 2, 4) else 0) for i, kind in enumerate(by_kind)]


class Decoder:
    """One rank's part, of `ranks` ranks. `leaf_by_leaf`: the same bits for all numbers of ranks."""

    def __init__(self, weights, rank, ranks, group, leaf_by_leaf):
        layers, last, self.embedding = weights
        mine = slice(rank * LEAVES // ranks, (rank + 1) * LEAVES // ranks)
        self.ranks, self.group, self.leaf_by_leaf = ranks, group, leaf_by_leaf
        self.layers = [layer[mine] if leaf_by_leaf else [joined(layer[mine])] for layer in layers]
        self.last = last[mine] if leaf_by_leaf else [torch.cat(last[mine], 1)]
        self.caches = [[([], []) for _ in layer] for layer in self.layers]

    def sum(self, parts):
        """Over all leaves of all ranks, in bfloat16."""
        total = parts[0].bfloat16()
        if self.leaf_by_leaf:
            all_reduce_leaves(total, torch.stack(parts), LEAVES, group=self.group)
        else:
            dist.all_reduce(total, group=self.group)
        return total

    def attend(self, x, part, cache):
        query, key, value = (x @ matrix for matrix in part[:3])
        for past, new in zip(cache, (key, value)):
            past.append(new)
        heads = lambda t: t.unflatten(-1, (-1, HEAD)).transpose(0, 1)
        mixed = scaled_dot_product_attention(heads(query), *(heads(torch.cat(past)) for past in cache))
        return mixed.transpose(0, 1).flatten(1).float() @ part[3].float()

    def logits(self, token):
        normal = lambda x: layer_norm(x, [WIDTH])
        x = self.embedding[token:token + 1]
        for layer, caches in zip(self.layers, self.caches):
            x = x + self.sum([self.attend(normal(x), *both) for both in zip(layer, caches)])
            x = x + self.sum([gelu(normal(x) @ part[4]).float() @ part[5].float() for part in layer])
        mine = torch.cat([normal(x) @ part for part in self.last], 1)
        whole = [torch.empty_like(mine) for _ in range(self.ranks)]
        dist.all_gather(whole, mine, group=self.group)
        return torch.cat(whole, 1)[0]


def decode(weights, ranks, group, leaf_by_leaf, count):
    """Greedy: the tokens, and the logits of each."""
    decoder = Decoder(weights, dist.get_rank(), ranks, group, leaf_by_leaf)
    tokens, logits = [7], []
    for _ in range(count):
        logits.append(decoder.logits(tokens[-1]))
        tokens.append(int(logits[-1].argmax()))
    return tokens, torch.stack(logits)


def main():
    options = parser()
    options.add_argument("--tokens", type=int, default=64, help="to decode (%(default)s)")
    given = start(options)
    torch.set_num_threads(1)  # more could cut a product otherwise
    weights = random_weights()
    sizes = [n for n in (1, 2, 4, 8) if n <= dist.get_world_size()]
    groups = {n: dist.new_group(list(range(n))) for n in sizes}
    for leaf_by_leaf in (False, True) if given.backend == "anyccl" else (False,):
        say("leaves and one tree:" if leaf_by_leaf else "as usual:")
        first = None
        for n in sizes:
            if dist.get_rank() < n:
                tokens, logits = decode(weights, n, groups[n], leaf_by_leaf, given.tokens)
                first = first or (tokens, logits)
                differing = (logits != first[1]).float().mean().item() * 100
                same = next((i for i, pair in enumerate(zip(tokens, first[0])) if pair[0] != pair[1]), None)
                digest = hashlib.sha256(logits.view(torch.int16).numpy().tobytes()).hexdigest()[:16]
                say(f"  {n} ranks: logits {digest}, {differing:.1f} % differ from those of one rank, "
                    f"{'all tokens are the same' if same is None else f'tokens differ from number {same} on'}")
                if leaf_by_leaf:
                    assert same is None and torch.equal(logits, first[1]), f"{n} ranks decode something else"
            dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
