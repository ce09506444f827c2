"""The measurements: all rounds of all libraries, kept in one JSON file, and the ratios that follow from them."""
import json
import math
from statistics import mean, median, stdev
from typing import NamedTuple

from limits import FAR

OURS = "anyccl"
ARENA = "anyccl arena"  # the same in memory from anycclMemAlloc
# Not libraries:
BOUND = "zero copy"  # a loop that copies nothing
BARE = "bare loop"   # a loop of two ranks that copies as a library must
LINES = "lines"      # the time in which two cores pass as many lines to each other
NO_LIBRARIES = (BOUND, BARE, LINES)
ENOUGH_ROUNDS = 4  # for a confidence bound; below, the lowest ratio stands for it
# Student's t that 95 % stay below, by degrees of freedom
T_95 = {3: 2.353, 4: 2.132, 5: 2.015, 6: 1.943, 7: 1.895, 8: 1.860, 9: 1.833, 10: 1.812}
T_95_MORE = 1.8


class Place(NamedTuple):
    transport: str
    op: str
    ranks: int
    bytes: int


class Ratio(NamedTuple):
    """How many times as long as ours a library takes, over the rounds."""
    median: float
    lowest: float
    highest: float
    bound: float  # the true ratio is above it with 95 % confidence


def lower_bound(ratios):
    if len(ratios) < ENOUGH_ROUNDS:
        return min(ratios)
    logs = [math.log(ratio) for ratio in ratios]
    t = T_95.get(len(logs) - 1, T_95_MORE)
    return math.exp(mean(logs) - t * stdev(logs) / math.sqrt(len(logs)))


class Results:
    def __init__(self, about):
        self.about = about     # common to all rounds: machine, program, limits, libraries
        self.rows = []         # as in the file
        self.done = set()      # keys of (round, turn)
        self.times = {}        # Place -> {library: {round: us}}
        self.lines = {}        # (Place, library, round) -> us that a cache line took then; 0: not known
        self._usual_line = None
        self.algorithms = {}   # (Place, library) -> name, in the last round
        self.wrong = set()     # (Place, library)

    def add(self, number, turn, library, row, line_us=0):
        self._take({"round": number, "transport": turn.transport, "op": turn.op, "ranks": turn.ranks,
                    "library": library, "line_us": line_us, **row._asdict()})

    def _take(self, row):
        place = Place(row["transport"], row["op"], row["ranks"], row["bytes"])
        self.rows.append(row)
        self.times.setdefault(place, {}).setdefault(row["library"], {})[row["round"]] = row["median_us"]
        self.lines[place, row["library"], row["round"]] = row.get("line_us", 0)
        self._usual_line = None
        self.algorithms[place, row["library"]] = row["algorithm"]
        if row["wrong"]:
            self.wrong.add((place, row["library"]))

    def save(self, file):
        partial = file.with_suffix(".part")
        rows = ",\n ".join(json.dumps(row) for row in self.rows)
        about = json.dumps({**self.about, "done": sorted(self.done)}, indent=1)
        partial.write_text(f'{{"about": {about},\n"rows": [\n {rows}]}}\n')
        partial.rename(file)

    @classmethod
    def load(cls, file):
        saved = json.loads(file.read_text())
        results = cls(saved["about"])
        results.done = set(results.about.pop("done"))
        for row in saved["rows"]:
            results._take(row)
        return results

    def libraries(self):
        """All that were measured, ours first, in the order of the program."""
        known = self.about["libraries"]
        return [name for name in known if any(name in by_library for by_library in self.times.values())]

    def peers(self):
        return [name for name in self.libraries() if not name.startswith(OURS) and name not in NO_LIBRARIES]

    def places(self, transport, op, ranks):
        return sorted(p for p in self.times if (p.transport, p.op, p.ranks) == (transport, op, ranks))

    def settings(self):
        """(transport, op, ranks) in the order of measurement."""
        return list(dict.fromkeys((p.transport, p.op, p.ranks) for p in self.times))

    def rounds(self):
        return max((row["round"] for row in self.rows), default=0)

    def usual_line(self):
        """The us that a cache line takes while the cores are near: the lower quartile; 0: it was not measured."""
        if self._usual_line is None:
            known = sorted(filter(None, [self.about["limits"]["line_us"], *self.lines.values()]))
            self._usual_line = known[len(known) // 4] if known else 0
        return self._usual_line

    def is_far(self, line_us):
        return line_us > FAR * self.usual_line()

    def far_share(self):
        return mean(self.is_far(us) for us in self.lines.values()) if self.lines else 0

    def _rounds(self, place, libraries):
        """Those of all these libraries with near cores; else with cores that were far for all; else whatever there is."""
        times = self.times.get(place, {})
        common = [n for n in times.get(libraries[0], {}) if all(n in times.get(name, {}) for name in libraries)]
        far = {n: [self.is_far(self.lines[place, name, n]) for name in libraries] for n in common}
        return [n for n in common if not any(far[n])] or [n for n in common if all(far[n])] or common

    def median_us(self, place, library=OURS):
        times = self.times.get(place, {}).get(library)
        return median(times[number] for number in self._rounds(place, [library])) if times else None

    def spread(self, place, library=OURS):
        """Between the rounds: (highest - lowest) / median."""
        times = [self.times[place][library][number] for number in self._rounds(place, [library])]
        return (max(times) - min(times)) / median(times)

    def ratio(self, place, library, ours=OURS):
        """To ours, of the rounds in which both were measured; None if there is none."""
        times = self.times.get(place, {})
        ratios = [times[library][number] / times[ours][number] for number in self._rounds(place, [library, ours])
                  if times[ours][number]]
        if not ratios:
            return None
        return Ratio(median(ratios), min(ratios), max(ratios), lower_bound(ratios))

    def best(self, place, libraries, ours=OURS):
        """(name, ratio to ours) of the fastest of them, or None."""
        ratios = [(name, self.ratio(place, name, ours)) for name in libraries]
        measured = [(name, ratio) for name, ratio in ratios if ratio]
        return min(measured, key=lambda pair: pair[1].median) if measured else None
