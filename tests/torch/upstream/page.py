#!/usr/bin/env python3
"""Writes docs/generated/torch-conformance.md from what suite.py found, or checks that it says the same.

    page.py DOC ANYCCL.json GLOO.json [--write]
    page.py DOC ANYCCL.json GLOO.json --part      ANYCCL.json holds some of the tests

The two files hold {test: [outcome, reason]}, merged over the passes.
"""

import collections
import json
import re
import sys

HEAD = """# The distributed test suite of PyTorch

<!-- written by tests/torch/upstream/run; make docs-torch writes it again -->
The torch wheel contains the suite that PyTorch tests its own backends with. It runs here unchanged against `anyccl`,
on four processes, as the ctest `long/torch/upstream` (one test in five of it also as `torch/upstream`), and, as a
control, against `gloo` (recorded in `tests/torch/upstream/gloo.json`). The suite picks much of what it runs by the
backend's name; it is told `gloo`, and
for the tests of all_to_all, which it gives to MPI only, `mpi`. What it checks runs on anyccl: each process asserts so.
Tests that it would skip with fewer than eight ranks run all the same.

"""

EXPECTED = {
    "test_ddp_logging_data_cpu": "DDP logs the name of the group, which is `custom` for every backend that is not part "
    "of torch; the test wants that of the backend",
}


def table(rows, head):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def page(ours, gloo):
    counts = collections.Counter(outcome for outcome, _ in ours.values())
    gloo_counts = collections.Counter(outcome for outcome, _ in gloo.values())
    text = HEAD
    text += table(
        [
            [name, str(count["pass"]), str(count["fail"]), str(count["skip"])]
            for name, count in (("anyccl", counts), ("gloo", gloo_counts))
        ],
        ["", "pass", "fail", "not for CPUs, or switched off by torch"],
    )
    failed = sorted(name for name, (outcome, _) in ours.items() if outcome == "fail")
    text += "\n## What fails\n\n"
    text += table([[f"`{name}`", gloo.get(name, ["?"])[0], EXPECTED.get(name, "**unexpected**")] for name in failed],
                  ["test", "gloo", "why"])
    text += "\n## What passes\n\n"
    passed = sorted(name for name, (outcome, _) in ours.items() if outcome == "pass")
    text += table([[f"`{name}`", gloo.get(name, ["?"])[0]] for name in passed], ["test", "gloo"])
    text += "\n## What is left out, with the suite's own reason\n\n"
    reasons = collections.defaultdict(list)
    for name, (outcome, reason) in ours.items():
        if outcome == "skip":
            reasons[reason.replace("|", "/")].append(name)
    order = sorted(reasons.items(), key=lambda item: (-len(item[1]), item[0]))
    text += table([[reason, str(len(names)), ", ".join(f"`{n}`" for n in sorted(names))] for reason, names in order],
                  ["reason", "tests", ""])
    return text, [name for name in failed if name not in EXPECTED]


def told(text):
    """{test: outcome}, as the page has it: the inverse of page()."""
    outcomes, section = {}, ""
    for line in text.splitlines():
        if line.startswith("## "):
            section = line
        elif line.startswith("|"):
            names = re.findall(r"`(test_\w+)`", line if "left out" in section else line.split("|")[1])
            kind = "fail" if "fails" in section else "pass" if "passes" in section else "skip"
            outcomes.update((name, kind) for name in names)
    return outcomes


def check_part(ours, text):
    """What differs from the page. A test that the suite leaves to MPI is run by the whole suite only."""
    expected = told(text)
    return [f"{name}: {outcome}, but the page says {expected.get(name)}" for name, (outcome, _) in sorted(ours.items())
            if outcome != expected.get(name) and not (outcome == "skip" and "all_to_all" in name)]


def main():
    write, part = "--write" in sys.argv, "--part" in sys.argv
    doc, ours, gloo = [a for a in sys.argv[1:] if not a.startswith("--")]
    with open(ours) as file:
        ours = json.load(file)
    with open(gloo) as file:
        gloo = json.load(file)
    if part:
        with open(doc) as file:
            differences = check_part(ours, file.read())
        print(f"{len(ours)} tests compared with {doc}", *differences, sep="\n")
        return 0 if ours and not differences else 1
    text, unexpected = page(ours, gloo)
    if write:
        with open(doc, "w") as file:
            file.write(text)
    with open(doc) as file:
        same = file.read() == text
    if unexpected:
        print("failed: " + " ".join(unexpected))
    if not same:
        print(f"{doc} says something else: write it again with tests/torch/upstream/run --write")
    return 0 if same and not unexpected else 1


if __name__ == "__main__":
    sys.exit(main())
