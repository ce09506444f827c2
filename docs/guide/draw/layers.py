"""The layers of the library, as its folders, and the modules that the field names.

layers.py FILE.svg
"""

from pathlib import Path

import figure

LAYERS = (  # folders of src, module, what it does, colour
    ("c ext runtime", "framework adaptation", "C, C++, Python, PyTorch: communicators and operations", figure.BLUE),
    ("framework", "communication framework", "groups, choice of algorithm, execution, streams, health", figure.GREEN),
    ("algorithm", "communication algorithms", "schedules: who sends which chunk to whom; proofs", figure.ORANGE),
    ("platform", "platform", "shared memory, sockets, TLS, CPU kernels, host facts", figure.RED),
)


def parts_of(folder):
    assert folder.is_dir(), f"there is no layer {folder}"
    parts = ", ".join(sorted(path.name for path in folder.iterdir() if path.is_dir()))
    return f"{folder}: {parts}" if parts else str(folder)


def main():
    src = Path("src")
    _, axis = figure.new(8, 3.2)
    axis.axis("off")
    axis.set_xlim(0, 10)
    axis.set_ylim(0.4, 5.6)
    axis.text(5, 5.3, "programs: PyTorch, NumPy, C, C++", ha="center", va="center", fontsize=10)
    for row, (folders, module, does, color) in enumerate(LAYERS):
        y = 4 - row * 1.15
        parts = "; ".join(parts_of(src / folder) for folder in folders.split())
        axis.add_patch(figure.matplotlib.patches.Rectangle((0.1, y), 9.8, 0.95, color=color, alpha=0.16, linewidth=0))
        axis.text(0.3, y + 0.66, module, fontsize=10.5, fontweight="bold", color=color, va="center")
        axis.text(4.2, y + 0.66, does, fontsize=8.5, va="center")
        axis.text(0.3, y + 0.25, parts, fontsize=7.5, color="#444444", va="center")
    figure.save(axis.figure)


main()
