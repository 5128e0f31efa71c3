"""Quantities as people write them: ``6h``, ``1h30m``, ``2.50``."""

import re
from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema
from pydantic_core import PydanticCustomError

_UNIT_SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_DURATION = re.compile(r"(?=\d)(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")
DURATION_PATTERN = r"^(?=\d)(\d+d)?(\d+h)?(\d+m)?(\d+s)?$"


def parse_duration(value: object) -> timedelta:
    """Read ``"6h"``, ``"1h30m"``, ``"45s"`` or a timedelta.

    Raises ValueError (as pydantic's custom error) for anything else, a bare number included: its unit is unknown.
    """
    if isinstance(value, timedelta):
        return value
    match = _DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise PydanticCustomError("duration", "not a duration")
    seconds = sum(int(n) * unit for n, unit in zip(match.groups(), _UNIT_SECONDS.values(), strict=True) if n)
    return timedelta(seconds=seconds)


def format_duration(value: timedelta) -> str:
    """The inverse of :func:`parse_duration`: ``timedelta(hours=1.5)`` -> ``"1h30m"``."""
    rest = round(value.total_seconds())
    parts = []
    for name, unit in _UNIT_SECONDS.items():
        count, rest = divmod(rest, unit)
        if count:
            parts.append(f"{count}{name}")
    return "".join(parts) or "0s"


def _exact_decimal(value: Any) -> Any:
    if isinstance(value, float):  # YAML reads 2.5 as a float; its shortest text is what the author wrote
        return Decimal(repr(value))
    return value


Duration = Annotated[
    timedelta,
    BeforeValidator(parse_duration),
    PlainSerializer(format_duration, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "pattern": DURATION_PATTERN, "examples": ["6h", "1h30m", "45s"]}),
]
Price = Annotated[
    Decimal,
    BeforeValidator(_exact_decimal),
    Field(ge=0, max_digits=14, decimal_places=6),
    WithJsonSchema({"anyOf": [{"type": "number", "minimum": 0}, {"type": "string"}]}),
]
