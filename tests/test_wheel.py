"""A wheel with compiled kernels, in an empty environment: nothing is compiled."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parent.parent
pytestmark = [
    pytest.mark.skipif(
        "CQELS_TEST_WHEEL" not in os.environ or "NUMBA_DISABLE_JIT" in os.environ,
        reason="building a wheel takes some minutes: set CQELS_TEST_WHEEL=1, or to the path of one",
    ),
    # One worker builds it, once.
    pytest.mark.xdist_group("wheel"),
]

Run = Callable[..., str]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    given = Path(os.environ["CQELS_TEST_WHEEL"])
    if given.suffix == ".whl":
        return given
    folder = tmp_path_factory.mktemp("dist")
    finished = subprocess.run([ROOT / "scripts" / "build_wheel", folder], capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    (built,) = folder.glob("*.whl")
    assert len(list(folder.glob("*.tar.gz"))) == 1
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Run a command of the package that was installed from the wheel, each with an empty cache, which must stay empty."""
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run([sys.executable, "-m", "venv", folder / "env"], check=True)
    python = folder / "env" / "bin" / "python"
    # Isolated: a package that PYTHONPATH shows counts as installed.
    subprocess.run([python, "-I", "-m", "pip", "install", "-q", "--no-deps", "--no-index", wheel], check=True)
    # The libraries are those of this environment, in which the package itself is installed in another way.
    packages = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    libraries = dict.fromkeys(path for path in sys.path if path.endswith("site-packages"))
    Path(packages, "libraries.pth").write_text("\n".join(libraries))
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(*arguments: str) -> str:
        cache = tmp_path_factory.mktemp("cache")
        finished = subprocess.run(
            [python, "-P", *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
            env={**environment, "CQELS_CACHE_DIR": str(cache)},
        )
        assert finished.returncode == 0, finished.stderr
        assert "compil" not in finished.stderr
        assert list(cache.rglob("*.nbc")) == []
        return finished.stdout

    return run


def test_the_wheel_is_for_this_platform_and_version(wheel: Path, installed: Run) -> None:
    version = f"cp{sys.version_info.major}{sys.version_info.minor}"
    machine = sysconfig.get_platform().rpartition("-")[2]
    assert version in wheel.name
    assert wheel.name.endswith(f"{machine}.whl")
    assert str(ROOT) not in installed("-c", "import cqels_py; print(cqels_py.__file__)")


def test_the_packages_can_be_published(wheel: Path) -> None:
    built = [wheel, *wheel.parent.glob("*.tar.gz")]
    checked = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", *built], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    with ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = archive.read(name).decode("utf-8")
    version = re.search(r'^__version__ = "(.*)"$', (ROOT / "cqels_py" / "__init__.py").read_text(), re.MULTILINE)
    assert version is not None
    assert f"\nVersion: {version[1]}\n" in metadata
    assert re.findall(r"\]\((?!https?:)[^)]*\)", metadata) == []
    assert f"## {version[1]}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_readmes_first_program_runs(installed: Run) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    program = re.findall(r"^```python\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)[0]
    expected = re.findall(r"^# (.*)$", program.partition("# prints:\n")[2], re.MULTILINE)
    assert installed("-c", program).splitlines() == expected


@pytest.mark.parametrize(
    "query", ["delay-by-carrier", "hourly-report", "late-airlines", "delays-in-a-row", "gale-alerts"]
)
def test_the_demo_compiles_nothing(installed: Run, query: str) -> None:
    assert installed("-m", "cqels_py", "demo", "flights", "--days", "1", "--query", query, "--limit", "3")


@pytest.mark.parametrize("suite", ["srbench", "lsbench"])
def test_the_queries_of_the_suites_compile_nothing(installed: Run, suite: str) -> None:
    assert "triples/s" in installed("-m", "cqels_py", "bench", suite, "--triples", "2000")


def test_pushes_compile_nothing(installed: Run) -> None:
    program = """
import cqels_py as cqels
engine = cqels.Engine()
query = engine.register("PREFIX : <http://ex.org/> SELECT ?a (AVG(?v) AS ?m) { STREAM :s [RANGE 3s] { ?a :v ?v } } GROUP BY ?a")
for second in range(5):
    engine.push("http://ex.org/s", [("<http://ex.org/a>", "<http://ex.org/v>", '"1.5"^^<http://www.w3.org/2001/XMLSchema#decimal>')],
                time=second * 1_000_000)
engine.finish()
print(len(list(query.results())))
"""
    assert int(installed("-c", program)) > 0
