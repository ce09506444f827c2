"""What the pictures of the guide have in common: written by matplotlib, the same bytes in every run."""

import json
import subprocess
import sys

import matplotlib

matplotlib.use("Agg")
matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "anyccl", "font.size": 9, "axes.axisbelow": True,
                            "axes.spines.top": False, "axes.spines.right": False, "figure.facecolor": "white"})
import matplotlib.pyplot  # noqa: E402

BLUE, RED, GREEN, ORANGE, GREY = "#0b61a4", "#d1495b", "#3a8f5c", "#e08e2b", "#9aa5ad"


def new(width=8.0, height=3.4, **options):
    return matplotlib.pyplot.subplots(figsize=(width, height), layout="constrained", **options)


def save(figure):
    """To the file that the command names."""
    figure.savefig(sys.argv[1], format="svg", metadata={"Date": None, "Creator": None})


def simulated(*words):
    """The rows of anyccl simulate."""
    printed = subprocess.run(["anyccl", "simulate", *map(str, words), "--json"], check=True, capture_output=True, text=True)
    return json.loads(printed.stdout)


def bars(axis, rows, colors):
    """Tracks of (name, [(begin, end, label, kind)]), the first one on top."""
    for y, (_, spans) in enumerate(rows):
        for begin, end, label, kind in spans:
            axis.barh(-y, end - begin, left=begin, height=0.62, color=colors[kind], edgecolor="white")
            axis.text((begin + end) / 2, -y, label, ha="center", va="center", color="white", fontsize=8)
    axis.set_yticks([-y for y in range(len(rows))], [name for name, _ in rows])
    axis.spines["left"].set_visible(False)
    axis.tick_params(axis="y", length=0)
