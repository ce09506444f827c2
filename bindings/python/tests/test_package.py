"""What the package says about itself."""

import ast
import builtins
import enum
import inspect
import re
from pathlib import Path

import pytest

import anyccl
from anyccl import _core, errors

FOLDER = Path(anyccl.__file__).parent


def public(thing):
    return {name for name in vars(thing) if not name.startswith("_")}


def stub():
    """What the stub has, by class."""
    names = {}
    for node in ast.parse((FOLDER / "_core.pyi").read_text()).body:
        if isinstance(node, ast.ClassDef):
            functions = {m.name for m in node.body if isinstance(m, ast.FunctionDef)}
            names[node.name] = functions | {t.id for m in node.body if isinstance(m, ast.Assign) for t in m.targets}
    return names


def header_text():
    root = FOLDER if (FOLDER / "include").exists() else Path(__file__).parents[3]
    return (root / "include/anyccl/anyccl.h").read_text()


def test_the_version_is_that_of_the_header():
    header = {}
    for line in header_text().splitlines():
        match line.split():
            case ["#define", name, value]:
                header[name] = value
    assert anyccl.__version__ == ".".join(header[f"ANYCCL_{part}"] for part in ("MAJOR", "MINOR", "PATCH"))


def test_the_exceptions_have_the_codes_of_the_header():
    values = header_text().split("anycclResult_t;")[0].rsplit("{", 1)[1]
    codes = {name: int(value) for name, value in re.findall(r"anyccl(\w+) = (\d+)", values)}
    for name in ("Success", "NumResults"):  # no errors
        del codes[name]
    assert codes.pop("UnhandledCudaError") == codes["UnhandledDeviceError"]  # NCCL's name of it
    other_names = {"DeviceError": "UnhandledDeviceError", "SystemFailure": "SystemError"}
    kinds = errors.by_code.values()
    assert {other_names.get(kind.__name__, kind.__name__): kind.code for kind in kinds} == codes
    assert all(errors.by_code[kind.code] is kind for kind in kinds)


CLASSES = [thing for name in anyccl.__all__ if inspect.isclass(thing := getattr(anyccl, name))]


@pytest.mark.parametrize("kind", [kind for kind in CLASSES if kind.__module__ == "anyccl._core"])
def test_the_stub_has_all_that_the_extension_has(kind):
    assert public(kind) <= stub()[kind.__name__]


def test_the_stub_names_no_type_that_is_not_there():
    text = (FOLDER / "_core.pyi").read_text()
    assert "anyccl::" not in text and "nanobind" not in text
    tree = ast.parse(text)
    imported = {a.asname or a.name for n in ast.walk(tree) if isinstance(n, (ast.Import, ast.ImportFrom)) for a in n.names}
    defined = {n.name for n in tree.body if isinstance(n, (ast.ClassDef, ast.FunctionDef))}
    annotations = [a.annotation for n in ast.walk(tree) if isinstance(n, ast.arg) and (a := n).annotation]
    annotations += [n.returns for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.returns]
    named = {n.id for annotation in annotations for n in ast.walk(annotation) if isinstance(n, ast.Name)}
    roots = {name.split(".")[0] for name in imported}
    assert named <= roots | defined | set(dir(builtins))


def test_the_stub_annotates_every_argument_and_result():
    open_ones = [
        f"{n.name}({a.arg})"
        for n in ast.walk(ast.parse((FOLDER / "_core.pyi").read_text()))
        if isinstance(n, ast.FunctionDef) and not n.name.startswith("_")
        for a in n.args.args + n.args.kwonlyargs
        if a.arg != "self" and a.annotation is None or n.returns is None
    ]
    assert open_ones == []


@pytest.mark.parametrize("name", ["all_reduce", "all_to_all_v", "scatter_v", "send", "recv", "barrier", "exscan"])
def test_every_operation_has_the_same_options(name):
    method = next(
        n for n in ast.walk(ast.parse((FOLDER / "_core.pyi").read_text())) if isinstance(n, ast.FunctionDef) and n.name == name
    )
    assert {"async_op", "stream", "timeout"} <= {a.arg for a in method.args.kwonlyargs}


def test_the_package_says_that_it_is_typed():
    assert (FOLDER / "py.typed").exists()


def test_everything_public_is_documented():
    undocumented = [
        f"{kind.__name__}.{name}"
        for kind in CLASSES
        if not issubclass(kind, enum.Enum)
        for name in public(kind) | {name for base in kind.__mro__ if base.__module__ == "anyccl.neighbors" for name in public(base)}
        if not inspect.getdoc(getattr(kind, name))
    ]
    assert undocumented == []
    assert all(inspect.getdoc(getattr(anyccl, name)) for name in anyccl.__all__ if name != "__version__")


def test_all_lists_what_the_extension_has():
    assert public(_core) <= set(anyccl.__all__)
