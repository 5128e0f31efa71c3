"""The ``gpupool`` command."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from gpupool.airflow.new_dag import DagTemplate, new_dag
from gpupool.exceptions import PoolFileError, RequestRefused
from gpupool.pool.config import Pool
from gpupool.pool.file import load_pool, pool_schema
from gpupool.settings import Settings

app = typer.Typer(no_args_is_help=True, help="A pool of GPUs, CPUs and NPUs operated by Apache Airflow.")

_File = Annotated[Path | None, typer.Argument(help="The pool file; default is GPUPOOL_POOL_FILE.")]


@app.command()
def check(
    file: _File = None,
    against: Annotated[Path | None, typer.Option(help="Show what changes from this other pool file.")] = None,
    live: Annotated[bool, typer.Option(help="Show what would change on this Airflow's pools.")] = False,
) -> None:
    """Check a pool file, and show what it would change. Ends with 1 if the file is wrong."""
    pool = _load(file)
    typer.echo(f"{_path(file)}: good. {len(pool.teams)} teams, {len(pool.flavors)} flavors, {len(pool.queues)} queues.")
    if against is not None:
        from gpupool.pool.difference import differences

        _echo_lines(differences(_load(against), pool), "Nothing changes.")
    if live:
        _echo_lines(_airflow_changes(pool, dry_run=True), "Airflow's pools already agree.")


@app.command()
def new(
    template: Annotated[DagTemplate, typer.Argument(help="What kind of job.")],
    queue: Annotated[str, typer.Option(help="A queue of the pool file.")],
    dag_id: Annotated[str, typer.Option(help="Id of the new DAG.")],
) -> None:
    """Print a new DAG to start from: gpupool new training --queue Q --dag-id D > dags/d.py"""
    pool = _load(None)
    try:
        typer.echo(new_dag(pool, template, queue, dag_id), nl=False)
    except RequestRefused as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from error


@app.command()
def schema() -> None:
    """Print the JSON Schema of the pool file, for editors."""
    typer.echo(pool_schema(), nl=False)


@app.command()
def apply(file: _File = None) -> None:
    """Discover this node and bring Airflow's pools to the pool file. Safe to repeat."""
    _echo_lines(_airflow_changes(_load(file), dry_run=False), "Airflow's pools already agree.")


@app.command()
def devices() -> None:
    """List this node's devices, their state and who holds them."""
    from gpupool.jobs.leases import DeviceLocks
    from gpupool.pool.ledger import merge
    from gpupool.telemetry.local import local_source

    ledger = merge(_load(None), [local_source().discover()], {})
    holders = DeviceLocks(Settings.from_env().state / "leases").holders()
    for node in ledger.nodes:
        typer.echo(f"node {node.node}: {node.state}{' - ' + node.why if node.why else ''}")
    for d in ledger.devices:
        holder = holders.get(d.device.device_id)
        use = f"held by {holder.job} ({holder.queue})" if holder else "free"
        typer.echo(f"  {d.device.device_id}  {d.flavor or 'no flavor':12} {d.state:10} {d.device.model:28} {use}")


@app.command()
def health(
    component: Annotated[str, typer.Argument(help="metadatabase, scheduler, dag_processor or triggerer")],
) -> None:
    """Ask the API server how a part of Airflow is. Ends with 1 unless it is healthy."""
    import httpx

    try:
        parts = httpx.get(f"{Settings.from_env().api_url}/api/v2/monitor/health", timeout=8).json()
    except httpx.HTTPError as error:
        typer.echo(f"The API server does not answer: {error}", err=True)
        raise typer.Exit(1) from error
    status = (parts.get(component) or {}).get("status")
    typer.echo(f"{component}: {status}")
    raise typer.Exit(0 if status == "healthy" else 1)


def _airflow_changes(pool: Pool, *, dry_run: bool) -> list[str]:
    from airflow.utils.session import create_session

    from gpupool.airflow.inventory import remembered, snapshot_rows
    from gpupool.airflow.pools import apply_pool, as_lines, planned_changes
    from gpupool.lake.store import Lake
    from gpupool.lake.tables import INVENTORY_SNAPSHOT
    from gpupool.pool.ledger import merge
    from gpupool.telemetry.local import local_source

    lake, now = Lake(Settings.from_env().lake), datetime.now(UTC)
    ledger = merge(pool, [local_source().discover()], remembered(lake, now))
    with create_session() as session:
        if dry_run:
            return as_lines(planned_changes(session, pool, ledger.capacity()))
        changes = apply_pool(session, pool, ledger.capacity(), who="gpupool apply")
    lake.insert_new(INVENTORY_SNAPSHOT, snapshot_rows(ledger, now))
    return as_lines(changes)


def _path(file: Path | None) -> Path:
    return file or Settings.from_env().pool_file


def _load(file: Path | None) -> Pool:
    try:
        return load_pool(_path(file))
    except PoolFileError as error:
        for finding in error.findings:
            typer.echo(finding, err=True)
        raise typer.Exit(1) from error


def _echo_lines(lines: list[str], otherwise: str) -> None:
    typer.echo("\n".join(lines) or otherwise)
