"""The rules of the house that a program can check: layers, libraries, kernels, packaging."""

from __future__ import annotations

import ast
import configparser
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "cqels_py"
MODULES = sorted(PACKAGE.rglob("*.py"))
NAMES = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in MODULES}
KERNELS = sorted(
    path
    for path in (PACKAGE / "kernels").rglob("*.py")
    if path.stem != "__init__" and path.parent.name not in ("compiler", "primitives")
)
HOUSE_DECORATORS = {"jit", "jit_flat", "jit_inline"}
FUNCTION_OR_CLASS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imported(path: Path) -> set[str]:
    """First parts of the modules that are imported anywhere in a file."""
    found: set[str] = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found.add(node.module.split(".")[0])
    return found


def within(path: Path, *folders: str) -> bool:
    return any(path.is_relative_to(PACKAGE / folder) for folder in folders)


def test_libraries_stay_where_they_belong() -> None:
    homes = {"numba": "kernels", "pyspark": "runners/spark", "click": "cli", "rich": "cli"}
    strays = [
        f"{name(path)} imports {library}, which belongs to {home}/"
        for path in MODULES
        for library, home in homes.items()
        if library in imported(path) and not within(path, home)
    ]
    assert strays == []


def test_only_the_command_line_prints() -> None:
    printing = [
        f"{name(path)}:{node.lineno}"
        for path in MODULES
        if not within(path, "cli")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert printing == []


def test_no_functions_are_values_on_an_elements_way() -> None:
    """Objects with methods can be followed by names, functions that are handed on cannot."""
    places = ("batches", "dataflow", "event_time", "operators", "state", "runners/local.py", "runners/chaining.py")
    found = [
        f"{name(path)} imports {alias.name}"
        for path in MODULES
        if within(path, *places)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name in ("Callable", "partial")
    ]
    assert found == []


def test_every_kernel_uses_the_house_decorator() -> None:
    """A function without it would run as Python: a thousand times slower, and callable from no kernel."""
    bare = [
        f"{name(path)}:{node.lineno}"
        for path in KERNELS
        for node in tree(path).body
        if isinstance(node, FUNCTION_OR_CLASS)
        and not is_named_tuple(node)
        and not {ast.unparse(decorator) for decorator in node.decorator_list} & HOUSE_DECORATORS
    ]
    assert bare == []


def is_named_tuple(node: ast.AST) -> bool:
    """Kernels open records into them."""
    return isinstance(node, ast.ClassDef) and [ast.unparse(base) for base in node.bases] == ["NamedTuple"]


def test_kernels_are_flat() -> None:
    """Closures and lambdas defeat numba's cache: they would compile anew in every process."""
    nested = [
        f"{name(path)}:{inner.lineno}"
        for path in KERNELS
        for function in tree(path).body
        for inner in ast.walk(function)
        if isinstance(inner, (*FUNCTION_OR_CLASS, ast.Lambda)) and inner is not function
    ]
    assert nested == []


def test_kernels_have_few_parameters() -> None:
    """Each array costs a call 40 ns: more of them belong into a state record."""
    wide = [
        f"{name(path)}:{node.lineno}"
        for path in KERNELS
        for node in tree(path).body
        if isinstance(node, ast.FunctionDef) and len(node.args.args) > 12
    ]
    assert wide == []


def test_modules_have_docstrings() -> None:
    assert [name(path) for path in MODULES if tree(path).body and not ast.get_docstring(tree(path))] == []
    assert [name(path) for path in MODULES if path.stem in ("utils", "helpers", "misc", "common")] == []


def test_import_contracts() -> None:
    """The layers of setup.cfg; the same contracts run as a step of scripts/check."""
    result = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr


def imported_modules(path: Path) -> set[str]:
    """Modules of the package that are imported when this one is: not in functions, nor for type checkers alone."""
    found: set[str] = set()
    waiting: list[ast.stmt] = list(tree(path).body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            parts = {f"{node.module}.{alias.name}" for alias in node.names}
            # `from package import module` is an import of the module; a package itself is imported before its modules anyway.
            found.update(parts if parts <= NAMES.keys() else {node.module, *parts})
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            waiting += node.orelse
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            waiting += [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]
    return found


def test_modules_do_not_import_each_other() -> None:
    """No circles within folders: import contracts see circles between folders."""
    imports = {name: imported_modules(path) & NAMES.keys() - {name} for name, path in NAMES.items()}
    TopologicalSorter(imports).prepare()


def packages() -> Iterator[str]:
    """Folders with modules; those of data and queries lie beside the package's code."""
    for folder in (PACKAGE, ROOT / "datasets", ROOT / "queries"):
        for path in folder.rglob("__init__.py"):
            parts = path.parent.relative_to(ROOT).parts
            yield ".".join(parts if folder == PACKAGE else ("cqels_py", *parts))


def test_every_folder_is_packaged() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    listed = config["options"]["packages"].split()
    assert listed == sorted(packages())


def test_help_is_quick_because_the_engine_is_not_imported() -> None:
    code = "import sys, cqels_py.cli.main; print(*sorted(m for m in sys.modules if '.' not in m))"
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not {"numba", "numpy", "pyarrow", "rdflib", "pyoxigraph"} & set(result.stdout.split())
