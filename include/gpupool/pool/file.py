"""Reading the pool file, with mistakes named by file, line, field and remedy."""

import json
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from gpupool.exceptions import PoolFileError
from gpupool.pool.config import Pool

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Path = tuple[str | int, ...]

_REMEDIES = {
    "missing": "Add this field.",
    "extra_forbidden": "Remove it, or correct its spelling.",
    "int_type": "Write a whole number.",
    "int_parsing": "Write a whole number.",
    "greater_than_equal": "Write {ge} or more.",
    "greater_than": "Write a number above {gt}.",
    "less_than_equal": "Write {le} or less.",
    "duration": "Write a duration with its unit, such as 45s, 30m, 6h or 1d12h.",
    "string_pattern_mismatch": "Write a value that matches {pattern}.",
    "enum": "Use one of: {expected}.",
    "literal_error": "Use one of: {expected}.",
    "dict_type": "Write `name: value` lines below it.",
    "too_short": "Add at least one entry.",
    "decimal_parsing": "Write a number such as 2.50.",
    "decimal_max_places": "Use at most {decimal_places} digits behind the point.",
    "string_type": "Put the value in quotes.",
}


def load_pool(path: Path) -> Pool:
    """Read and check the pool file.

    Raises PoolFileError with one sentence per mistake: ``FILE:LINE: FIELD: what is wrong (got VALUE). Remedy``.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise PoolFileError(
            [f"{path}: the pool file cannot be read ({error.strerror}). Set GPUPOOL_POOL_FILE to its path."]
        ) from error
    return parse_pool(text, str(path))


def parse_pool(text: str, name: str = "pool.yaml") -> Pool:
    """Like :func:`load_pool`, from text; ``name`` stands in the messages."""
    data, lines, repeated = _read_yaml(text, name)
    findings = [f"{name}:{line}: {_dotted(path)}: stands twice. Keep one of the two." for path, line in repeated]
    try:
        pool = Pool.model_validate(data)
    except ValidationError as error:
        findings += [_sentence(name, lines, detail) for detail in error.errors()]
        raise PoolFileError(findings) from error
    findings += [
        f"{name}:{_line(lines, where)}: {_dotted(where)}: no {kind} is called {value!r}. {remedy}"
        for where, kind, value, remedy in pool.dangling_names()
    ]
    if findings:
        raise PoolFileError(findings)
    return pool


def pool_schema() -> str:
    """The pool file's JSON Schema (draft 2020-12), for editors."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **Pool.model_json_schema()}
    return json.dumps(schema, indent=2) + "\n"


def _read_yaml(text: str, name: str) -> tuple[Any, dict[_Path, int], list[tuple[_Path, int]]]:
    """The data, the line of each path, and keys that stand twice (YAML would silently keep the last)."""
    try:
        loader = _LOADER(text)
        root = loader.get_single_node()
        data = loader.construct_document(root) if root is not None else None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise PoolFileError(
            [f"{name}:{line}: not YAML: {error.problem}. Correct the indentation or quoting there."]
        ) from error
    lines: dict[_Path, int] = {(): 1}
    repeated: list[tuple[_Path, int]] = []
    if root is not None:
        _walk(root, (), lines, repeated)
    return data, lines, repeated


def _walk(node: yaml.Node, path: _Path, lines: dict[_Path, int], repeated: list[tuple[_Path, int]]) -> None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            here = (*path, key.value)
            if here in lines:
                repeated.append((here, key.start_mark.line + 1))
            lines[here] = key.start_mark.line + 1
            _walk(value, here, lines, repeated)
    elif isinstance(node, yaml.SequenceNode):
        for i, value in enumerate(node.value):
            lines[(*path, i)] = value.start_mark.line + 1
            _walk(value, (*path, i), lines, repeated)


def _sentence(name: str, lines: dict[_Path, int], detail: ErrorDetails) -> str:
    where = tuple(part for part in detail["loc"] if part != "[key]")
    context = detail.get("ctx") or {}
    remedy = context.get("remedy") or _REMEDIES.get(detail["type"], "See docs/pool-file.md.").format_map(context)
    value = detail["input"]
    got = "" if detail["type"] == "missing" or isinstance(value, dict | list) else f" (got {value!r})"
    message = detail["msg"][0].lower() + detail["msg"][1:]
    return f"{name}:{_line(lines, where)}: {_dotted(where) or 'the file'}: {message}{got}. {remedy}"


def _line(lines: dict[_Path, int], where: _Path) -> int:
    while where not in lines:
        where = where[:-1]
    return lines[where]


def _dotted(path: _Path) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
