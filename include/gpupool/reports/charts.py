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


def device_hours_chart(hours: pl.DataFrame) -> str:
    """Stacked bars of device-hours per hour of the day, one row of bars per flavor.

    ``hours``: hour (HH:MM), flavor, kind, device_hours. Returns an SVG element.
    """
    data = alt.InlineData(values=hours.with_columns(rank=_rank()).to_dicts())
    bars = (
        alt.Chart(data)
        .mark_bar(size=18)
        .encode(
            x=alt.X("hour:O", title="hour", scale=alt.Scale(domain=[f"{h:02}:00" for h in range(24)]), axis=_AXIS),
            y=alt.Y("device_hours:Q", title="device-hours"),
            color=alt.Color(
                "kind:N",
                title=None,
                scale=alt.Scale(domain=list(_KINDS), range=list(_KINDS.values())),
                legend=alt.Legend(orient="top"),
            ),
            order=alt.Order("rank:Q"),
        )
        .properties(width=720, height=150)
        .facet(row=alt.Row("flavor:N", title=None))
        .configure(font="system-ui, sans-serif")
        .configure_view(stroke=None)
    )
    return str(vlc.vegalite_to_svg(bars.to_dict()))


_AXIS = alt.Axis(labelAngle=0, labelOverlap=True)


def _rank() -> pl.Expr:
    return pl.col("kind").replace_strict({kind: i for i, kind in enumerate(_KINDS)}, return_dtype=pl.Int32)
