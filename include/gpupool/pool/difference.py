"""What changes from one pool file to another, field by field."""

from typing import Any

from gpupool.pool.config import Pool


def differences(old: Pool, new: Pool) -> list[str]:
    """One line per changed field: ``queues.nlp.priority: 100 -> 200``; ``none`` where it did not or will not exist."""
    before, after = _flat(old.model_dump(mode="json"), ""), _flat(new.model_dump(mode="json"), "")
    return [
        f"{field}: {before.get(field, 'none')} -> {after.get(field, 'none')}"
        for field in dict.fromkeys([*before, *after])
        if before.get(field) != after.get(field)
    ]


def _flat(value: Any, path: str) -> dict[str, Any]:
    if isinstance(value, dict) and value:
        return {k: v for key, inner in value.items() for k, v in _flat(inner, f"{path}.{key}" if path else key).items()}
    if isinstance(value, list) and value:
        return {k: v for i, inner in enumerate(value) for k, v in _flat(inner, f"{path}[{i}]").items()}
    return {path: value}
