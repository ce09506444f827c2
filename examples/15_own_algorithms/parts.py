"""Parts that algorithms are composed of: each follows a chunk of the vector from rank to rank."""


def reduce_along_ring(p, members, part):
    """The sum of a part over the members, at the last one that it comes to."""
    order = [members[(part + k) % len(members)] for k in range(len(members))]
    total = p.chunk(order[0], "input", part)
    for rank in order[1:]:
        total = p.chunk(rank, "input", part).reduce(total)
    return total


def copy_round_ring(total, members):
    """From the member that has it to all others."""
    at = members.index(total.rank)
    for k in range(1, len(members)):
        total = total.copy(members[(at + k) % len(members)], "output")


def reduce_up_tree(chunks):
    """The sum of one chunk of each, at the first one: in rounds, half of those that are left add up the others."""
    chunks = list(chunks)
    distance = 1
    while distance < len(chunks):
        for i in range(0, len(chunks) - distance, 2 * distance):
            chunks[i] = chunks[i].reduce(chunks[i + distance])
        distance *= 2
    return chunks[0]


def copy_down_tree(total, ranks):
    """From the first of the ranks to all others, the same tree downwards. Where it is then, rank by rank."""
    have = {0: total}
    distance = 1
    while distance < len(ranks):
        distance *= 2
    while distance > 1:
        distance //= 2
        for i in range(0, len(ranks) - distance, 2 * distance):
            have[i + distance] = have[i].copy(ranks[i + distance], "output")
    return [have[i] for i in range(len(ranks))]
