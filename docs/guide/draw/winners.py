"""The fastest AllReduce for each size and number of ranks, as anyccl simulate has it.

winners.py FILE.svg
"""

import figure

RANKS = (4, 8, 16, 32, 64, 128)
SIZES = ("1K", "8K", "64K", "256K", "1M", "8M", "64M")
TOPOLOGIES = (("flat", "one switch"), ("torus", "torus"))
COLORS = ("#0b61a4", "#d1495b", "#3a8f5c", "#e08e2b", "#6a4c93", "#8c6d46", "#5f9e9e", "#555555")


def fastest(topology):
    words = ("all_reduce", "-n", ",".join(map(str, RANKS)), "-b", ",".join(SIZES), "--overhead", 1, "--topology", topology)
    best = {}
    for row in figure.simulated(*words)["rows"]:
        place = (row["ranks"], row["bytes"])
        if place not in best or row["us"] < best[place]["us"]:
            best[place] = row
    return {place: row["algorithm"].partition("/")[2] for place, row in best.items()}


def main():
    _, axes = figure.new(9, 3.4, ncols=2, sharey=True)
    colors = {}
    for axis, (topology, title) in zip(axes, TOPOLOGIES):
        winners = fastest(topology)
        sizes = sorted({size for _, size in winners})
        for (ranks, size), name in sorted(winners.items()):
            color = colors.setdefault(name, COLORS[len(colors)])
            x, y = sizes.index(size), RANKS.index(ranks)
            axis.add_patch(figure.matplotlib.patches.Rectangle((x, y), 0.96, 0.92, color=color))
            axis.text(x + 0.48, y + 0.46, name.replace("_", "\n"), ha="center", va="center", color="white", fontsize=5.5)
        axis.set(xlim=(0, len(sizes)), ylim=(0, len(RANKS)), title=title, xlabel="bytes of the vector")
        axis.set_xticks([x + 0.5 for x in range(len(sizes))], SIZES)
        axis.set_yticks([y + 0.5 for y in range(len(RANKS))], [f"{ranks} ranks" for ranks in RANKS])
    figure.save(axes[0].figure)


main()
