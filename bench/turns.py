"""Measurements of two ways in turns, by `anyccl perf`."""

import json
import os
import pathlib
import random
import statistics
import subprocess

TOOL = pathlib.Path(__file__).resolve().parent.parent / "build/release/bin/anyccl"


def add_options(parser):
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("-b", "--first", default="4K")
    parser.add_argument("-e", "--last", default="1M")
    parser.add_argument("-f", "--factor", default="16")
    parser.add_argument("-n", "--iterations", default="1000", help="timed calls a size")
    parser.add_argument("--of", choices=("median_us", "min_us"), default="median_us",
                        help="which time of a row's calls: on a busy machine the shortest says more")
    parser.add_argument("--tool", default=TOOL)


def measure(args, ranks, folder, options=(), variables=None):
    """Microseconds of an AllReduce by (bytes, in place)."""
    rows = pathlib.Path(folder) / "rows.json"
    command = [args.tool, "perf", "all_reduce", "-g", str(ranks), "-b", args.first, "-e", args.last, "-f", args.factor]
    command += ["-n", args.iterations, "-w", "100", "-c", "0", "--json", rows, *options]
    environment = os.environ | {"ANYCCL_TUNER_TABLE": "none"} | (variables or {})
    subprocess.run(command, check=True, capture_output=True, env=environment)
    return {(row["bytes"], row["inplace"]): row[args.of] for row in json.loads(rows.read_text())}


def in_turns(rounds, cells, measure_one):
    """By (*cell, bytes, in place): of each round the times of both ways. measure_one(cell, way)."""
    times = {}
    for turn in range(rounds):
        for cell in cells:
            got = {way: measure_one(cell, way) for way in ((0, 1) if turn % 2 else (1, 0))}
            for row in got[0]:
                times.setdefault((*cell, *row), []).append((got[0][row], got[1][row]))
    return times


def interval(ratios, tries=2000):
    """Of their median, by the bootstrap."""
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(tries))
    return medians[round(tries * 0.025)], medians[round(tries * 0.975) - 1]


def text_of(ratios):
    low, _, high = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
    begin, end = interval(ratios)
    return f"x{statistics.median(ratios):.3f} (x{low:.3f} to x{high:.3f}; 95 %: x{begin:.3f} to x{end:.3f})"


def all_ratios(times):
    return [second / first for pairs in times.values() for first, second in pairs]


def print_load(args):
    print(f"load of the machine: {os.getloadavg()[0]:.1f}; {args.rounds} rounds of {args.iterations} calls, of each {args.of}\n")


def columns(pairs):
    """Both medians in microseconds, and the second over the first."""
    us = [f"{statistics.median(column):.2f}" for column in zip(*pairs)]
    return f"{us[0]} | {us[1]} | {text_of([second / first for first, second in pairs])}"
