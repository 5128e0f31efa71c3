"""The installation's pool file, read once per change of the file in each process."""

from functools import lru_cache
from pathlib import Path

from gpupool.pool.config import Pool
from gpupool.pool.file import load_pool
from gpupool.settings import Settings


def current_pool() -> Pool:
    """The pool file that ``GPUPOOL_POOL_FILE`` names. Raises PoolFileError if it is wrong or cannot be read."""
    path = Settings.from_env().pool_file
    return _load(path, path.stat().st_mtime_ns if path.exists() else 0)


@lru_cache(maxsize=2)
def _load(path: Path, _modified_ns: int) -> Pool:
    return load_pool(path)
