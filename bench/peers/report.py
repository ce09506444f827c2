"""From measured rounds to tables: medians, spread, ratios, verdicts."""
import math
from statistics import median
from typing import NamedTuple


class Place(NamedTuple):
    transport: str
    ranks: int
    bytes: int


# What anyccl wants to reach on two cores, in us, whatever the others do.
TARGETS_US = {
    Place("shm", 2, 8): 0.30,
    Place("shm", 2, 4 << 10): 1.8,
    Place("shm", 2, 64 << 10): 9,
    Place("shm", 2, 1 << 20): 150,
    Place("shm", 4, 8): 3,
    Place("shm", 8, 8): 7,
    Place("tcp", 2, 8): 5,
    Place("tcp", 2, 1 << 20): 300,
}
TITLES = {"shm": "inside a host", "tcp": "TCP over loopback"}


class Results:
    """median_us per place, library and round."""
    def __init__(self, libraries):
        self.libraries = libraries  # names; the first is ours
        self.rounds = {}            # Place -> {library: [median_us per round]}
        self.algorithms = {}        # (Place, library) -> name, in the last round
        self.wrong = []

    def add(self, place, library, row):
        self.rounds.setdefault(place, {}).setdefault(library, []).append(row.median_us)
        self.algorithms[place, library] = row.algorithm
        if row.wrong:
            self.wrong.append((place, library))

    def median_us(self, place, library):
        times = self.rounds[place].get(library)
        return median(times) if times else None

    def spread(self, place, library):
        """Between the rounds: (highest - lowest) / median."""
        times = self.rounds[place][library]
        return (max(times) - min(times)) / median(times)

    def ratio(self, place, library):
        """How many times as long as ours the library takes; None if one was not measured."""
        theirs, ours = self.median_us(place, library), self.median_us(place, self.libraries[0])
        return theirs / ours if theirs and ours else None


def size_name(size):
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size // unit} {name}"
    return f"{size} B"


def factor(ratio):
    return f"x{ratio:.2f}" if ratio < 10 else f"x{ratio:.0f}"


def cell(results, place, library):
    us = results.median_us(place, library)
    if us is None:
        return f"{'-':>26}"
    ratio = results.ratio(place, library) if library != results.libraries[0] else None
    return f"{us:>10.2f} {results.spread(place, library) * 100:>4.0f} % {factor(ratio) if ratio else '':>8}"


def comparison(results, places, peer):
    """Geometric mean and lowest of the peer's ratios; None if it was not measured there."""
    ratios = {place: results.ratio(place, peer) for place in places if results.ratio(place, peer)}
    if not ratios:
        return None
    mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
    worst = min(ratios, key=ratios.get)
    return f"{peer} {factor(mean)}, lowest {factor(ratios[worst])} at {size_name(worst.bytes)}"


def tables(results):
    """One table per transport and number of ranks: median us, spread between rounds, ratio to ours."""
    lines = []
    for transport, ranks in dict.fromkeys((p.transport, p.ranks) for p in results.rounds):
        places = sorted(p for p in results.rounds if (p.transport, p.ranks) == (transport, ranks))
        lines += ["", f"{ranks} ranks, {TITLES[transport]}",
                  f"{'':>9}" + "".join(f"{name:>26}" for name in results.libraries)]
        lines += [f"{size_name(place.bytes):>9}" + "".join(cell(results, place, name) for name in results.libraries)
                  for place in places]
        means = filter(None, (comparison(results, places, peer) for peer in results.libraries[1:]))
        lines.append("Geometric mean: " + "; ".join(means))
    return lines


def verdicts(results):
    """Our own targets, which are for two cores that nobody else uses."""
    lines = ["", "Targets"]
    for place, target in TARGETS_US.items():
        us = results.median_us(place, results.libraries[0]) if place in results.rounds else None
        verdict = "not measured" if us is None else f"{us:8.2f} us  {'met' if us <= target else 'MISSED'}"
        lines.append(f"  {place.ranks} ranks, {place.transport}, {size_name(place.bytes):>6}: "
                     f"at most {target:6.2f} us  {verdict}")
    return lines


def as_rows(results):
    """For --json: one row per place and library."""
    return [{"op": "all_reduce", "dtype": "float32", "redop": "sum", **place._asdict(), "library": library,
             "algorithm": results.algorithms[place, library], "median_us": results.median_us(place, library),
             "rounds_us": times, "spread": results.spread(place, library), "ratio": results.ratio(place, library),
             "target_us": TARGETS_US.get(place) if library == results.libraries[0] else None}
            for place, by_library in results.rounds.items() for library, times in by_library.items()]
