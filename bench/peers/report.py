"""From results to tables, in Markdown that is also aligned for terminals."""
from gate import CELL_BOUND, MEANS, failures, is_judged, means, size_name, times, verdicts
from limits import FAR, floor_us
from plan import OPS
from results import BARE, BOUND, LINES, OURS

TITLES = {"shm": "inside a host", "tcp": "TCP over loopback"}
NAMES = {LINES: "limit: lines passed", "openmpi": "Open MPI", "mpich": "MPICH", "impi": "Intel MPI", "oneccl": "oneCCL", "gloo": "Gloo"}


def name_of(library):
    return NAMES.get(library, library)


def aligned(rows):
    """A table of Markdown; the first row is the head."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["| " + " | ".join(cell.rjust(width) for cell, width in zip(row, widths)) + " |" for row in rows]
    return [lines[0], "|" + "|".join("-" * (width + 1) + ":" for width in widths) + "|", *lines[1:]]


def microseconds(us):
    return f"{us:.2f}" if us < 100 else f"{us:.0f}"


def ratio_cell(ratio):
    if ratio is None:
        return ""
    if ratio.lowest == ratio.highest:
        return times(ratio.median)
    return f"{times(ratio.median)} ({times(ratio.lowest)[1:]}-{times(ratio.highest)[1:]})"


def limit_us(results, place):
    """No call is shorter: as many lines passed between the cores, for two ranks, and all that must be copied."""
    if place.transport != "shm":
        return None
    floor = floor_us(results.about["limits"], place.op, place.ranks, place.bytes)
    return max(floor, results.median_us(place, LINES) or 0)


def limit_cell(results, place):
    limit = limit_us(results, place)
    return f"{microseconds(limit)} (x{results.median_us(place) / limit:.1f})" if limit else ""


def table(results, transport, op, ranks):
    """Our us with their spread, the limit and how many times as long we take, the ratios of a bare loop and of each
    peer, and the gate."""
    places = [place for place in results.places(transport, op, ranks) if results.median_us(place)]
    beside = [name for name in (BARE, *results.peers()) if any(results.ratio(place, name) for place in places)]
    rows = [["bytes", "anyccl us", "spread", "limit us", *map(name_of, beside), "gate"]]
    for place in places:
        failed = ", ".join(f"{failure.peer} {failure.bound:.2f}" for failure in failures(results, [place]))
        rows.append([size_name(place.bytes) if place.bytes else "-", microseconds(results.median_us(place)),
                     f"{results.spread(place) * 100:.0f} %", limit_cell(results, place),
                     *(ratio_cell(results.ratio(place, other)) for other in beside),
                     failed or ("ok" if is_judged(results, place) else "-")])
    return ["", f"**{op}, {ranks} ranks, {TITLES[transport]}**", "", *aligned(rows)]


def variants_table(results):
    """Other ways to call anyccl, as time per byte relative to the plain call."""
    variants = [name for name in results.libraries() if name == BOUND or name.startswith(OURS) and name != OURS]
    rows = [["ranks", "op", "bytes", *variants]]
    for place in sorted(results.times, key=lambda place: (place.op, place.ranks, place.bytes)):
        ratios = [results.ratio(place, name) for name in variants]
        if any(ratios):
            rows.append([str(place.ranks), place.op, size_name(place.bytes), *map(ratio_cell, ratios)])
    return ["", "**Variants of anyccl**: time relative to anyccl with float32 in plain memory, for the same number of bytes; "
            "zero copy: a loop of threads that reads all inputs and writes all outputs in place", "",
            *aligned(rows)] if len(rows) > 1 else []


def means_table(results):
    measured = {op: means(results, op) for op in OPS}
    columns = list(dict.fromkeys(name for found in measured.values() for name in found))
    rows = [["operation", *map(name_of, columns), "wanted", "verdict"]]
    for op, found in measured.items():
        if not found:
            continue
        met = all(mean >= MEANS[op] for peer, mean in found.items() if peer in results.peers())
        rows.append([op, *(times(found[name]) if name in found else "" for name in columns), f"x{MEANS[op]:g}",
                     "met" if met else "MISSED"])
    return ["", "**Geometric means** of the ratios inside a host, over all ranks and sizes", "", *aligned(rows)]


def failures_list(results):
    found = sorted(failures(results, results.times), key=lambda failure: failure.bound)
    cells = sum(is_judged(results, place) for place in results.times)
    if not found:
        return ["", f"**Gate**: no peer is ahead in any of {cells} cells."]
    rows = [["op", "ranks", "transport", "bytes", "peer", "ratio", "lower bound", "ours must take"]]
    for place, peer, bound, ratio in found:
        rows.append([place.op, str(place.ranks), place.transport, size_name(place.bytes), name_of(peer), f"{ratio:.2f}",
                     f"{bound:.2f}", f"{(1 - bound / CELL_BOUND) * 100:.0f} % less"])
    failed = len({failure.place for failure in found})
    return ["", f"**Gate**: {failed} of {cells} cells fail: the lower bound of a peer's ratio is below {CELL_BOUND}.",
            "", *aligned(rows)]


def targets_table(results):
    rows = [["target", "wanted", "measured", "verdict"]]
    rows += [[verdict.what, verdict.wanted, verdict.measured, {None: "-", True: "met", False: "MISSED"}[verdict.met]]
             for verdict in verdicts(results)]
    return ["", "**Targets** of all_reduce", "", *aligned(rows)] if len(rows) > 1 else []


def heading(results):
    about, where = results.about, results.about["machine"]
    many = results.rounds() > 1
    rounds = f"median of up to {results.rounds()} rounds in which the libraries take turns" if many else "one round"
    spread = ", in the median round (in the lowest - the highest)" if many else ""
    lines = [f"float32, sum; {where['cpu']}, {where['cores']} cores, Linux {where['kernel']}. "
             f"{where['peers']}.",
             f"Median us per call (maximum over ranks), {rounds}. xR: the library takes R times as long as anyccl"
             f"{spread}. Limit: the longest of the time of a cache line between two cores, of the operation's memory "
             "traffic at the highest speed at which all cores together copy, and, with 2 ranks, of a loop in the same "
             "rounds, in which two cores write and read the bytes that each must pass to the other, and do nothing else; "
             "in brackets how many times as long anyccl takes. Bare loop: two threads that copy, add up and copy tiles, "
             "without a library. A library that takes 20 times as long as anyccl in a whole batch of sizes is measured "
             "in the first round only. A barrier, which is not timed, precedes each call of an operation with a root. With more ranks than cores, the last rank to leave that barrier "
             "may find the data already there, so small sizes are not judged (-).",
             *([f"All buffers begin {about['offset']} bytes behind the beginning of a page."] if about.get("offset") else []),
             f"A cache line takes {results.usual_line() * 1e3:.0f} ns from core to core."]
    if any(results.lines.values()):
        lines.append(f"During {results.far_share() * 100:.0f} % of the measurements it took over {FAR:g} times as long, as the "
                     "host of a virtual machine moves cores. Ratios are of rounds with near cores, else of rounds in which "
                     "they were far for both libraries, else of all rounds.")
    return lines + [f"Left out: {name}: {why}" for name, why in about.get("left_out", {}).items()]


def summary(results):
    return means_table(results) + targets_table(results) + failures_list(results)


def tables(results):
    lines = []
    for setting in sorted(results.settings(), key=lambda s: (s[0], OPS.index(s[1]), s[2])):
        lines += table(results, *setting)
    return lines + variants_table(results)
