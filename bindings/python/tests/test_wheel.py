"""The wheel: it is built, installed, used from Python, C and the shell, and uninstalled without a rest."""

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

SOURCE = Path(os.environ["TEST_SOURCE"])
BUILD = Path(os.environ["TEST_WHEEL_BUILD"])


def run(*command, **options):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "ANYCCL_"))}
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, env=env, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """The interpreter of a new environment that has the wheel, and NumPy from this one."""
    wheels = tmp_path_factory.mktemp("wheels")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    werror = f"-Ccmake.define.ANYCCL_WERROR={os.environ['TEST_WERROR']}"
    run(*pip, "wheel", "--no-deps", "--no-build-isolation", f"-Cbuild-dir={BUILD}", werror, "-w", wheels, SOURCE)
    folder = tmp_path_factory.mktemp("venv")
    venv.create(folder, with_pip=False)
    new = folder / "bin/python"
    site = Path(run(new, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    numpy = Path(__import__("numpy").__file__).parents[1]
    for part in numpy.glob("numpy*"):
        (site / part.name).symlink_to(part)
    before = sorted(folder.rglob("*"))
    run(*pip, "--python", new, "install", "--no-deps", "--no-index", *wheels.glob("anyccl-*.whl"))
    yield new
    run(*pip, "--python", new, "uninstall", "-y", "anyccl")
    assert [p for p in sorted(folder.rglob("*")) if p not in before and p.name != "__pycache__"] == []


def test_the_example_runs_with_the_tool_of_the_wheel(python):
    tool = python.parent / "anyccl"
    said = run(tool, "run", "-n", "2", "--", python, "-B", SOURCE / "examples/09_numpy.py")
    assert "rank 0" in said


def test_a_c_project_finds_the_library_in_the_wheel(python, tmp_path):
    (tmp_path / "version.c").write_text(
        """#include <anyccl/anyccl.h>
           #include <stdio.h>
           int main(void) { int v = 0; anycclGetVersion(&v); printf("%d", v == ANYCCL_VERSION_CODE); return 0; }"""
    )
    (tmp_path / "CMakeLists.txt").write_text(
        """cmake_minimum_required(VERSION 3.25)
           project(user LANGUAGES C)
           find_package(anyccl REQUIRED)
           add_executable(version version.c)
           target_link_libraries(version PRIVATE anyccl::anyccl)"""
    )
    prefix = run(python, "-B", "-c", "import anyccl; print(anyccl.cmake_prefix_path())").strip()
    run("cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", tmp_path / "build")
    assert run(tmp_path / "build/version") == "1"


def test_headers_and_library_are_where_the_package_says(python):
    code = "import anyccl; print(anyccl.include_dir(), anyccl.library_dir())"
    include, library = run(python, "-B", "-c", code).split()
    assert Path(include, "anyccl/anyccl.hpp").exists()
    assert [p.name for p in Path(library).glob("libanyccl*")] == ["libanyccl.so.0"]


def test_the_wheel_is_nothing_but_files_of_anyccl(python):
    code = "import importlib.metadata as m; print(*{f.parts[0] for f in m.files('anyccl')})"
    assert all(name.startswith("anyccl") or name == ".." for name in run(python, "-B", "-c", code).split())
