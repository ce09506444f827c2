"""Time of AllReduce against size on 64 ranks, for four algorithms, as anyccl simulate has it.

cost.py FILE.svg
"""

import figure

RANKS = 64
ALGORITHMS = (("ring", figure.BLUE), ("halving_doubling", figure.GREEN), ("recursive_doubling", figure.RED),
              ("reduce_broadcast", figure.ORANGE))


def main():
    _, axis = figure.new(8, 3.8)
    sizes = ",".join(str(1 << power) for power in range(3, 29))
    for name, color in ALGORITHMS:
        rows = figure.simulated(f"all_reduce/{name}", "-n", RANKS, "-b", sizes)["rows"]
        axis.plot([row["bytes"] for row in rows], [row["us"] for row in rows], color=color, label=name, linewidth=2)
    axis.set(xscale="log", yscale="log", xlabel="bytes of the vector", ylabel="us, simulated",
             title=f"AllReduce on {RANKS} ranks: a message 5 us, a link 25 GB/s")
    axis.set_xticks([8, 1 << 10, 64 << 10, 1 << 20, 16 << 20, 256 << 20], ["8", "1K", "64K", "1M", "16M", "256M"])
    axis.minorticks_off()
    axis.grid(color="#dddddd", linewidth=0.6)
    axis.legend(frameon=False)
    figure.save(axis.figure)


main()
