"""Pictures: time and bus bandwidth against size, one figure per operation, all libraries, and the limits."""
import svg
from gate import size_name
from limits import bus_factor, memory_us
from plan import OPS
from report import TITLES, name_of
from results import BARE, BOUND, LINES, OURS

COLORS = {"anyccl": "#0b61a4", "openmpi": "#d1495b", "mpich": "#e08e2b", "impi": "#6a4c93", "oneccl": "#8c6d46",
          "gloo": "#5f9e6e", "anyccl arena": "#3fa7d6", "anyccl bf16": "#6fb1d8", "anyccl f16": "#a3cfe8",
          BOUND: "#9aa5ad", BARE: "#c4a000", LINES: "#444444"}
MARKERS = {"anyccl": "o", "openmpi": "s", "mpich": "^", "impi": "D", "oneccl": "v", "gloo": "x"}
LIMIT = "#444444"
TICKS = (8, 64, 512, 4 << 10, 32 << 10, 256 << 10, 2 << 20, 16 << 20)


def available():
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "anyccl", "font.size": 9, "axes.grid": True,
                                "grid.color": "#dddddd", "grid.linewidth": 0.6, "axes.axisbelow": True})
    return True


def style(library):
    ours = library == OURS
    return {"color": COLORS.get(library, "black"), "marker": MARKERS.get(library, "."),
            "markersize": 4.5 if ours else 3.5, "linewidth": 2.2 if ours else 1.1, "zorder": 3 if ours else 2,
            "label": name_of(library),
            "linestyle": "-" if ours or not library.startswith(OURS) else "--"}


def gigabytes(op, ranks, size, us):
    return size / us / 1e3 * bus_factor(op, ranks)


def measured(results, setting, library=OURS):
    """[(bytes, us)]"""
    times = [(place.bytes, results.median_us(place, library)) for place in results.places(*setting)]
    return [(size, us) for size, us in times if us]


def draw_libraries(results, setting, time_axis, rate_axis):
    transport, op, ranks = setting
    for library in reversed(results.libraries()):
        points = measured(results, setting, library)
        if not points:
            continue
        sizes, us = zip(*points)
        time_axis.plot(sizes, us, **style(library))
        rate_axis.plot(sizes, [gigabytes(op, ranks, *point) for point in points], **style(library))


def draw_limits(results, setting, time_axis, rate_axis):
    transport, op, ranks = setting
    if transport != "shm":
        return
    limits = results.about["limits"]
    line = {"color": LIMIT, "linewidth": 1, "zorder": 1}
    if limits["line_us"]:
        time_axis.axhline(limits["line_us"], linestyle=":", label="limit: one cache line", **line)
    points = [(size, memory_us(limits, op, ranks, size)) for size, _ in limits["copy_GBps"]]
    sizes, us = zip(*points)
    memory = {**line, "linestyle": "--", "label": "limit: memory traffic"}
    time_axis.plot(sizes, us, **memory)
    rate_axis.plot(sizes, [gigabytes(op, ranks, *point) for point in points], **memory)


def label_sizes(axis, sizes):
    axis.set_xscale("log", base=2)
    ticks = [size for size in TICKS if sizes[0] <= size <= sizes[-1]]
    axis.set_xticks(ticks, [size_name(size).replace("iB", "").replace(" B", "") for size in ticks])
    axis.minorticks_off()
    axis.set_xlim(sizes[0] / 1.5, sizes[-1] * 1.5)


def draw_setting(results, setting, time_axis, rate_axis):
    draw_libraries(results, setting, time_axis, rate_axis)
    draw_limits(results, setting, time_axis, rate_axis)
    sizes = [place.bytes for place in results.places(*setting)]
    for axis in (time_axis, rate_axis):
        label_sizes(axis, sizes)
        axis.set_yscale("log")
    ours = [gigabytes(setting[1], setting[2], *point) for point in measured(results, setting)]
    rate_axis.set_ylim(min(ours, default=1) / 10)  # slower libraries need no room
    time_axis.set_title(f"{setting[1]}, {setting[2]} ranks" + (f", {TITLES['tcp']}" if setting[0] == "tcp" else ""))


def legend(figure, axes):
    """One for all axes; ours first."""
    found = {}
    for axis in axes:
        found.update(zip(*reversed(axis.get_legend_handles_labels())))
    names = sorted(found, key=lambda name: (name.startswith("limit"), not name.startswith(OURS), name))
    figure.legend([found[name] for name in names], names, loc="lower center", frameon=False, fontsize=8.5,
                  ncols=min(len(names), int(figure.get_figwidth() / 1.65)))


def figure_of(results, op):
    """Columns: settings; time above bandwidth. The barrier, which has no size, in one plot against ranks."""
    from matplotlib import pyplot
    settings = sorted((s for s in results.settings() if s[1] == op), key=lambda s: (s[0], s[2]))
    if op == "barrier":
        return barrier_figure(results, settings)
    figure, axes = pyplot.subplots(2, len(settings), figsize=(max(7.8, 3.7 * len(settings)), 6.8), squeeze=False)
    for column, setting in enumerate(settings):
        draw_setting(results, setting, axes[0][column], axes[1][column])
        axes[1][column].set_xlabel("bytes")
    axes[0][0].set_ylabel("µs per call")
    axes[1][0].set_ylabel("bus bandwidth, GB/s")
    figure.tight_layout(rect=(0, 0.1, 1, 1))
    legend(figure, axes[0])
    return figure


def barrier_figure(results, settings):
    from matplotlib import pyplot
    figure, axis = pyplot.subplots(figsize=(7.8, 4.2))
    places = [place for setting in settings for place in results.places(*setting)]
    for library in reversed(results.libraries()):
        points = [(p.ranks, results.median_us(p, library)) for p in places if results.median_us(p, library)]
        if points:
            axis.plot(*zip(*points), **style(library))
    if results.about["limits"]["line_us"]:
        axis.axhline(results.about["limits"]["line_us"], linestyle=":", color=LIMIT, label="limit: one cache line")
    axis.set(title="barrier", xlabel="ranks", ylabel="µs per call", yscale="log",
             xticks=sorted({place.ranks for place in places}))
    figure.tight_layout(rect=(0, 0.11, 1, 1))
    legend(figure, [axis])
    return figure


def draw(results, folder):
    """Writes an SVG and a PNG for each operation into `folder`; returns the names of the SVGs."""
    from matplotlib import pyplot
    folder.mkdir(parents=True, exist_ok=True)
    names = []
    for op in (op for op in OPS if any(place.op == op for place in results.times)):
        figure = figure_of(results, op)
        figure.savefig(folder / f"peers-{op}.svg")
        svg.thin_file(folder / f"peers-{op}.svg")
        figure.savefig(folder / f"peers-{op}.png", dpi=110)
        pyplot.close(figure)
        names.append(f"peers-{op}.svg")
    return names
