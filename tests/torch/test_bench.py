"""bench/torch/busy.py measures, and says what it cannot."""

import json
import subprocess
import sys
from pathlib import Path

BUSY = Path(__file__).resolve().parents[2] / "bench/torch/busy.py"


def busy(*arguments):
    command = [sys.executable, "-B", BUSY, "--without-mpi", "--ranks", "2", "--seconds", "0.01", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_each_operation_is_measured(tmp_path):
    result = busy("--beside", "nobody", "--json", tmp_path / "rows.json")
    assert result.returncode == 0, result.stderr
    rows = json.loads((tmp_path / "rows.json").read_text())
    assert len(rows) == 9 and {row["beside"] for row in rows} == {"nobody"}
    assert all(0 < row[library]["median"] <= row[library]["p99"] for row in rows for library in ("anyccl", "gloo"))
    assert result.stdout.count("\n| 2 |") == len(rows)


def test_loops_are_beside_it_and_a_quota_is_measured_or_said_to_be_impossible():
    result = busy("--beside", "2 jobs,one core", "--what", "barrier,all_reduce 8 B")
    assert result.returncode == 0, result.stderr
    assert all(f"| 2 jobs | {what} |" in result.stdout for what in ("barrier", "all_reduce 8 B")), result.stdout
    assert ("| one core | barrier |" in result.stdout) != ("not measured: no group" in result.stderr), result.stderr


def test_unknown_names_are_refused():
    result = busy("--beside", "a cat")
    assert result.returncode == 2 and "'a cat' is not one of nobody, 2 loops" in result.stderr
