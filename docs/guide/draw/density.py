"""How many times fewer bytes a rank sends with the largest elements only, than in a ring AllReduce of all: payloads are packed.

density.py FILE.svg
"""

import figure
import numpy
from anyccl import sparse

ELEMENTS = 1 << 20
RANKS = ((2, figure.BLUE), (8, figure.GREEN), (32, figure.ORANGE), (128, figure.RED))
DENSITIES = [10 ** (exponent / 4) for exponent in range(-12, -2)]


def payload_bytes(density):
    vector = numpy.random.default_rng(7).standard_normal(ELEMENTS).astype("float32")
    return sparse.pack(vector, sparse.top_k(vector, int(density * ELEMENTS))).nbytes


def main():
    _, axis = figure.new(8, 3.4)
    payloads = [payload_bytes(density) for density in DENSITIES]
    for ranks, color in RANKS:
        ring = 2 * (ranks - 1) / ranks * 4 * ELEMENTS
        factors = [ring / ((ranks - 1) * payload) for payload in payloads]
        axis.plot([100 * density for density in DENSITIES], factors, color=color, linewidth=2, label=f"{ranks} ranks")
    axis.axhline(1, color=figure.GREY, linestyle="--")
    axis.set(xscale="log", yscale="log", xlabel="% of the gradient that is sent", ylabel="times fewer bytes")
    axis.set_xticks([0.1, 1, 10], ["0.1", "1", "10"])
    axis.set_yticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
    axis.minorticks_off()
    axis.grid(color="#dddddd", linewidth=0.6)
    axis.legend(frameon=False)
    figure.save(axis.figure)


main()
