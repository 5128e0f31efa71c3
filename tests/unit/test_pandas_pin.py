"""The gate works at the lower end of the pandas pin as at the upper: their string and null types differ."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

UV = shutil.which("uv") or str(ROOT / ".tools/bin/uv")
LOWEST = "pandas==2.2.3"  # the first of 2.2 that is built for every Python in requires-python


@pytest.mark.slow
@pytest.mark.skipif(not Path(UV).exists(), reason="needs uv, which the Makefile brings")
def test_the_gate_passes_with_the_oldest_pandas(tmp_path):
    install = [UV, "pip", "install", "--quiet", "--python", sys.executable, "--target", tmp_path, "--no-deps"]
    subprocess.run([*install, LOWEST, "pytz"], check=True)
    env = os.environ | {"PYTHONPATH": str(tmp_path)}
    version = subprocess.check_output(
        [sys.executable, "-c", "import pandas; print(pandas.__version__)"], env=env, text=True
    )
    assert version.strip() == LOWEST.partition("==")[2]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/unit/test_gate.py"]
    done = subprocess.run(command, check=False, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]
