"""The backward pass of three equal layers under DDP, each a bucket of its own, with AllReduce beside it and after it.

buckets.py FILE.svg
"""

import figure

BACKWARD, ALL_REDUCE = 10, 7  # ms of a layer
LAYERS = (3, 2, 1)


def beside():
    """An AllReduce begins when its layer is done and the one before it has ended."""
    computing, sums, free = [], [], 0
    for number, layer in enumerate(LAYERS):
        done = (number + 1) * BACKWARD
        computing.append((done - BACKWARD, done, f"backward {layer}", "compute"))
        begin = max(done, free)
        free = begin + ALL_REDUCE
        sums.append((begin, free, f"sum {layer}", "exposed" if layer == LAYERS[-1] else "hidden"))
    return computing, sums


def after():
    computing, _ = beside()
    end = len(LAYERS) * BACKWARD
    return computing, [(end + i * ALL_REDUCE, end + (i + 1) * ALL_REDUCE, f"sum {layer}", "exposed")
                       for i, layer in enumerate(LAYERS)]


def main():
    colors = {"compute": figure.BLUE, "hidden": figure.GREEN, "exposed": figure.RED}
    rows = []
    for name, (computing, sums) in (("one after the other", after()), ("in buckets", beside())):
        rows += [(f"{name}: computing", computing), ("communicating", sums)]
    _, axis = figure.new(8, 2.8)
    figure.bars(axis, rows, colors)
    axis.set_xlabel("ms; red: nothing is computed meanwhile")
    figure.save(axis.figure)


main()
