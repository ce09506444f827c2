"""The folders of an installed package that C, C++ and CMake projects need."""

from pathlib import Path

_package = Path(__file__).resolve().parent


def cmake_prefix_path() -> str:
    """A folder for CMAKE_PREFIX_PATH: ``find_package(anyccl)`` then gives the target anyccl::anyccl."""
    return str(_package)


def include_dir() -> str:
    """The folder to which ``#include <anyccl/anyccl.h>`` is relative."""
    return str(_package / "include")


def library_dir() -> str:
    """The folder of libanyccl.so.0, which the extension itself uses."""
    return str(_package / "lib")
