"""gpupool's routes in Airflow's API server. Every route is authenticated by Airflow's own rules for pools."""

from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_pool
from fastapi import Body, Depends, FastAPI, HTTPException
from fastapi.responses import FileResponse, HTMLResponse

from gpupool.airflow.attempts import read_attempts
from gpupool.airflow.pool_file import current_pool
from gpupool.airflow.pools import apply_pool
from gpupool.exceptions import PoolFileError
from gpupool.settings import Settings

app = FastAPI(title="gpupool", openapi_url=None)


@app.post("/pools", dependencies=[Depends(requires_access_pool("PUT"))])
def apply_pools(
    capacity: Annotated[dict[str, int], Body(embed=True)], session: SessionDep, user: GetUserDep
) -> list[str]:
    """Bring Airflow's pools to the pool file; body: schedulable devices per flavor. Returns the steps taken."""
    try:
        pool = current_pool()
    except PoolFileError as error:
        raise HTTPException(409, str(error)) from error
    return [f"{c.action} {c.pool}: {c.reason}" for c in apply_pool(session, pool, capacity, who=user.get_name())]


@app.get("/attempts", dependencies=[Depends(requires_access_pool("GET"))])
def attempts(since: datetime, session: SessionDep) -> list[dict[str, Any]]:
    """Rows of table ``job_attempt`` for attempts alive at or after ``since``."""
    return list(read_attempts(session, current_pool(), since))


@app.get("/report", dependencies=[Depends(requires_access_pool("GET"))])
def latest_report() -> Any:
    """The newest report, as a page."""
    found = sorted(Path(Settings.from_env().reports).glob("daily-*.html"))
    if not found:
        return HTMLResponse("<p>No report yet. The DAG <code>gpupool_report</code> writes it.</p>", 404)
    return FileResponse(found[-1], media_type="text/html")
