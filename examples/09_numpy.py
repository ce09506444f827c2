# NumPy: each rank fits a line to its share of the points; together they fit it to all of them.
#   PYTHONPATH=build/release/python build/release/bin/anyccl run -n 4 -- .venv/bin/python examples/09_numpy.py

import numpy as np

import anyccl

STEPS = 100

with anyccl.Communicator.from_env() as comm:
    # Points of y = 3x - 2: this rank knows those in its part of the x axis.
    x = np.linspace(-1, 1, 1000).reshape(-1, 1000 // comm.size)[comm.rank]
    y = 3 * x - 2

    # All ranks start with the line of rank 0.
    line = comm.broadcast(np.random.default_rng().normal(size=2), root=0)

    for _ in range(STEPS):
        error = line[0] * x + line[1] - y
        gradient = np.array([np.mean(error * x), np.mean(error)])
        comm.all_reduce(gradient, "avg", out=gradient)  # in place
        line -= gradient

    # While the lines of all ranks are on their way, each measures its own.
    lines = comm.all_gather(line, async_op=True)
    worst = comm.all_reduce(np.abs(line - [3, -2]).max(), "max")

    print(f"rank {comm.rank} of {comm.size}: y = {line[0]:.3f} x + {line[1]:.3f}")
    assert worst < 1e-6, f"WRONG: the line is off by {worst}"
    assert (lines.wait() == line).all(), "WRONG: the ranks have different lines"
