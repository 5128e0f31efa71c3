"""Charts as SVG text, drawn by altair without a browser."""

import altair as alt
import polars as pl
import vl_convert as vlc

_KINDS = {
    "allocated and busy": "#1a7f5a",
    "allocated, idle": "#e0a030",
    "busy without a job": "#8a6fb0",
    "free": "#d5dbe1",
}
_COLOURS = alt.Scale(domain=list(_KINDS), range=list(_KINDS.values()))
_FONT = "Noto Sans, DejaVu Sans, sans-serif"


def device_hours_chart(hours: pl.DataFrame) -> str:
    """Stacked bars of device-hours per hour of the day, one row of bars per flavor.

    ``hours``: hour (HH), flavor, kind, device_hours. Returns an SVG element.
    """
    data = alt.InlineData(values=hours.with_columns(rank=_rank()).to_dicts())
    clock = alt.Scale(domain=[f"{hour:02}" for hour in range(24)])
    bars = (
        alt.Chart(data)
        .mark_bar(size=22)
        .encode(
            x=alt.X("hour:O", title="hour of the day", scale=clock, axis=alt.Axis(labelAngle=0)),
            y=alt.Y("device_hours:Q", title="device-hours"),
            color=alt.Color("kind:N", title=None, scale=_COLOURS, legend=alt.Legend(orient="top", columnPadding=40)),
            order=alt.Order("rank:Q"),
        )
        .properties(width=800, height=150)
        .facet(row=alt.Row("flavor:N", title=None, header=alt.Header(labelFontWeight="bold", labelFontSize=12)))
        .configure(font=_FONT)
        .configure_axis(titleFontWeight="normal")
        .configure_view(stroke=None)
    )
    return str(vlc.vegalite_to_svg(bars.to_dict()))


def _rank() -> pl.Expr:
    return pl.col("kind").replace_strict({kind: i for i, kind in enumerate(_KINDS)}, return_dtype=pl.Int32)
