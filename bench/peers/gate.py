"""The requirements: no cell slower than a peer, means, and the targets of all_reduce."""
import math
from typing import NamedTuple

from plan import KIB, MIB, OPS
from results import ARENA, BOUND, OURS, Place

CELL_BOUND = 0.95  # of the lower bound of the ratio, in every cell and against every peer
MEANS = {op: 2.0 if op == "all_reduce" else 1.3 for op in OPS}
JUDGED_FROM = 16 * KIB  # bytes, for operations with a root when ranks share cores
MPIS = ("openmpi", "mpich", "impi")


class Target(NamedTuple):
    """For all_reduce; `peers`: the fastest of them takes at least `factor` times as long as ours."""
    transport: str
    ranks: int
    sizes: tuple
    peers: tuple
    factor: float
    at_most_us: float = math.inf
    ours: str = OURS


TWO = [((8,), 2.3), ((KIB, 4 * KIB), 1.5), ((16 * KIB,), 1.8), ((64 * KIB,), 2.2), ((256 * KIB, MIB), 1.35),
       ((4 * MIB, 16 * MIB), 1.7), ((64 * MIB,), 2.5)]
SMALL, LARGE = (8, 64, 256, 512, KIB, 4 * KIB), (64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB)
TARGETS = [
    *(Target("shm", 2, sizes, MPIS, factor, 0.26 if sizes == (8,) else math.inf) for sizes, factor in TWO),
    Target("shm", 2, (8,), ("gloo",), 300),
    Target("shm", 2, (64 * MIB,), ("gloo",), 4),
    *(Target("shm", n, sizes, ("openmpi",), factor) for n in (4, 8) for sizes, factor in ((SMALL, 2.5), (LARGE, 1.8))),
    *(Target("shm", 2, LARGE[1:] + (64 * MIB,), peers, factor, ours=ARENA)
      for peers, factor in ((("openmpi",), 3), ((BOUND,), 0.8))),
    Target("shm", 4, (8,), (), 0, 3),
    Target("shm", 8, (8,), (), 0, 7),
    Target("tcp", 2, (8,), (), 0, 5),
    Target("tcp", 2, (MIB,), (), 0, 300),
]


def size_name(size):
    for unit, name in ((MIB, "MiB"), (KIB, "KiB")):
        if size >= unit:
            return f"{size // unit} {name}"
    return f"{size} B"


def times(ratio):
    return f"x{ratio:.2f}" if ratio < 10 else f"x{ratio:.0f}"


def is_judged(results, place):
    """Not if a barrier decides: it precedes calls with a root, and the last rank to get a core finds the data
    there, so that the call takes no time, or a time slice."""
    crowded = place.ranks > results.about["limits"]["cores"]
    return not (place.op in ("broadcast", "reduce") and crowded and place.bytes < JUDGED_FROM)


class Failure(NamedTuple):
    place: Place
    peer: str
    bound: float
    ratio: float


def failures(results, places):
    """Cells in which a peer may be faster."""
    found = []
    for place in (place for place in places if is_judged(results, place)):
        for peer in results.peers():
            ratio = results.ratio(place, peer)
            if ratio and ratio.bound < CELL_BOUND:
                found.append(Failure(place, peer, ratio.bound, ratio.median))
    return found


def geometric_mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def means(results, op, transport="shm"):
    """{peer: geometric mean of its ratios over all ranks and sizes}, and that of the best peer of each cell."""
    places = [p for p in results.times if (p.op, p.transport) == (op, transport) and is_judged(results, p)]
    found = {}
    for peer in results.peers():
        ratios = [ratio.median for ratio in (results.ratio(place, peer) for place in places) if ratio]
        if ratios:
            found[peer] = geometric_mean(ratios)
    best = [pair[1].median for pair in (results.best(place, results.peers()) for place in places) if pair]
    if best:
        found["best of each cell"] = geometric_mean(best)
    return found


class Verdict(NamedTuple):
    what: str
    wanted: str
    measured: str
    met: object  # None: not measured


def judge(results, target):
    """One verdict for each measured size of a target."""
    found = []
    for size in target.sizes:
        place = Place(target.transport, "all_reduce", target.ranks, size)
        ours = results.median_us(place, target.ours)
        if ours is None:
            continue
        best = results.best(place, target.peers, target.ours)
        wanted, measured, met = [], [], True
        if target.factor:
            wanted.append(f"{'best MPI' if target.peers == MPIS else target.peers[0]} at least x{target.factor:g}")
            ratios = {name: results.ratio(place, name, target.ours) for name in target.peers}
            measured.append(", ".join(f"{name} {times(ratio.median)}" for name, ratio in ratios.items() if ratio) or "-")
            met = best[1].median >= target.factor if best else None
        if target.at_most_us < math.inf:
            wanted.append(f"at most {target.at_most_us:g} us")
            measured.append(f"{ours:.2f} us")
            met = met and ours <= target.at_most_us
        what = f"{target.ranks} ranks, {target.transport}, {size_name(size)}" + ", arena" * (target.ours == ARENA)
        found.append(Verdict(what, "; ".join(wanted), "; ".join(measured), met))
    return found


def verdicts(results):
    return [verdict for target in TARGETS for verdict in judge(results, target)]
