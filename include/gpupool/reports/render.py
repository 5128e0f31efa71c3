"""From figures to a page that needs nothing but itself: no CDN, no script, one file."""

import os
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, select_autoescape
from markupsafe import Markup

from gpupool.reports.charts import device_hours_chart
from gpupool.reports.daily import Daily

_NOTHING = "–"


def write_report(daily: Daily, folder: Path) -> Path:
    """Write ``daily-YYYY-MM-DD.html`` into ``folder``, whole or not at all, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"daily-{daily.day.isoformat()}.html"
    draft = path.with_suffix(f".{os.getpid()}.tmp")
    draft.write_text(render(daily), encoding="utf-8")
    draft.replace(path)
    return path


def render(daily: Daily) -> str:
    """The page as text."""
    environment = Environment(
        loader=PackageLoader("gpupool.reports"), autoescape=select_autoescape(default=True), trim_blocks=True
    )
    environment.filters |= {"percent": _percent, "number": _number, "seconds": _seconds, "money": _money}
    # S704: the chart is our own SVG and the style our own file.
    chart = Markup(device_hours_chart(daily.hours)) if daily.hours.height else ""  # noqa: S704
    style = Markup(environment.get_template("daily.css.j2").render())  # noqa: S704
    return environment.get_template("daily.html.j2").render(daily=daily, chart=chart, style=style)


def _percent(value: float | None) -> str:
    return _NOTHING if value is None else f"{value:.1f} %"


def _number(value: float | None) -> str:
    """Two digits behind the point, three for small amounts."""
    if value is None:
        return _NOTHING
    return f"{value:,.3f}" if 0 < abs(value) < 1 else f"{value:,.2f}"


def _money(value: Any) -> str:
    return f"{value:,.4f}" if value and abs(value) < 1 else f"{value:,.2f}"


def _seconds(value: float | None) -> str:
    """``75`` -> ``1 min 15 s``."""
    if value is None:
        return _NOTHING
    minutes, seconds = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds} s" if minutes else f"{value:.1f} s"
