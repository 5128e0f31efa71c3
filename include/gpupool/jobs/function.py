"""Running one Python function as a job: its source and arguments go into a folder, its result comes back out of it."""

import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_SCRIPT = """\
# Written by gpupool: runs the function of a @task.gpu task.
import pathlib as _pathlib, pickle as _pickle
_here = _pathlib.Path(__file__).parent
{source}

if __name__ == "__main__":
    _args, _kwargs = _pickle.loads((_here / "arguments.pickle").read_bytes())
    _result = {name}(*_args, **_kwargs)
    (_here / "result.pickle").write_bytes(_pickle.dumps(_result))
"""


def write_call(folder: Path, source: str, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Path:
    """Write the script that calls function ``name`` of ``source``; returns its path.

    Raises TypeError if an argument cannot be sent to another process.
    """
    try:
        arguments = pickle.dumps((tuple(args), dict(kwargs)))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise TypeError(
            f"An argument of {name}() cannot be sent to the job ({error}). Pass plain values or paths to files."
        ) from error
    (folder / "arguments.pickle").write_bytes(arguments)
    script = folder / f"{name}.py"
    script.write_text(_SCRIPT.format(source=source, name=name), encoding="utf-8")
    return script


def read_result(folder: Path) -> Any:
    """What the function returned."""
    return pickle.loads((folder / "result.pickle").read_bytes())  # noqa: S301 - written by our own job a moment ago
