"""Four operations on one stream, and on two of which the second one communicates.

streams.py FILE.svg
"""

import figure

COMPUTE, COMMUNICATE, OPERATIONS = 10, 3, 4


def main():
    one, computing, sums, now = [], [], [], 0
    for number in range(1, OPERATIONS + 1):
        one += [(now, now + COMPUTE, f"OP{number}", "compute"), (now + COMPUTE, now + COMPUTE + COMMUNICATE, f"C{number}", "exposed")]
        now += COMPUTE + COMMUNICATE
        done = number * COMPUTE
        computing.append((done - COMPUTE, done, f"OP{number}", "compute"))
        sums.append((done, done + COMMUNICATE, f"C{number}", "exposed" if number == OPERATIONS else "hidden"))
    _, axis = figure.new(8, 2.2)
    colors = {"compute": figure.BLUE, "hidden": figure.GREEN, "exposed": figure.RED}
    figure.bars(axis, [("one stream", one), ("two: computing", computing), ("communicating", sums)], colors)
    axis.set_xlabel("ms; red: nothing is computed meanwhile")
    figure.save(axis.figure)


main()
