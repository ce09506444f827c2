"""Three AllReduces of one's own: a ring, a tree, and a ring inside each host with a tree across the hosts."""

from parts import copy_down_tree, copy_round_ring, reduce_along_ring, reduce_up_tree

from anyccl import dsl


@dsl.algorithm("all_reduce", parts=lambda n: n)
def my_ring(p):
    """Each part of the vector goes round the ring to be summed, and its sum goes round again."""
    for part in p.everyone:
        copy_round_ring(reduce_along_ring(p, p.everyone, part), p.everyone)


@dsl.algorithm("all_reduce")
def my_tree(p):
    """The vector goes up a binomial tree to rank 0 and down again: few rounds, for small vectors."""
    total = reduce_up_tree(p.chunk(r, "input", 0) for r in p.everyone)
    copy_down_tree(total, p.everyone)


@dsl.algorithm("all_reduce", parts=lambda _, hosts: len(hosts[0]))
def ring_and_tree(p):
    """A ring inside each host, and for each part a tree across the hosts: every rank drives the network."""
    for part in range(p.parts):
        sums = [reduce_along_ring(p, host, part) for host in p.hosts]
        total = reduce_up_tree(sums)
        for host, total in zip(p.hosts, copy_down_tree(total, [one.rank for one in sums])):
            copy_round_ring(total, host)
