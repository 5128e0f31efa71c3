"""The house as docs/architecture.md draws it: imports point one way, and Airflow stays in its room."""

import ast
from pathlib import Path

import pytest

from tests.conftest import ROOT

HOUSE = ROOT / "include/gpupool"
MAY_IMPORT = {
    "pool": set(),
    "scheduling": {"pool"},
    "jobs": {"pool"},
    "telemetry": {"pool"},
    "lake": set(),
    "metering": {"lake"},
    "reports": {"pool", "lake", "metering"},
    "airflow": {"pool", "scheduling", "jobs", "telemetry", "lake", "metering", "reports"},
}
EVERYWHERE = {"exceptions", "settings"}
ONLY_IN = {
    "airflow": {"airflow"},
    "sqlalchemy": {"airflow"},
    "fastapi": {"airflow"},
    "kubernetes": {"jobs"},
    "pynvml": {"telemetry"},
    "great_expectations": {"telemetry"},
    "deltalake": {"lake"},
    "altair": {"reports"},
}


def imports(file: Path) -> set[str]:
    """Dotted names that a file imports, inside functions too."""
    names = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return names


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_imports_point_one_way(room: str):
    for file in (HOUSE / room).rglob("*.py"):
        names = imports(file)
        rooms = {name.split(".")[1] for name in names if name.startswith("gpupool.")}
        assert rooms <= MAY_IMPORT[room] | EVERYWHERE | {room}, file
        for outside, allowed in ONLY_IN.items():
            if room not in allowed:
                assert outside not in {name.split(".")[0] for name in names}, file


def test_the_guardian_needs_only_the_standard_library():
    import sys

    assert {name.split(".")[0] for name in imports(HOUSE / "jobs/guardian.py")} <= sys.stdlib_module_names


def test_files_are_read_in_one_sitting():
    lengths = sorted(len(file.read_text().splitlines()) for file in HOUSE.rglob("*.py"))
    assert lengths[len(lengths) // 2] <= 100
    assert lengths[-1] <= 350
