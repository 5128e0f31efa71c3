"""gpupool's routes in Airflow's API server. Every route is authenticated by Airflow's own rules for pools."""

from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_pool
from fastapi import Body, Depends, FastAPI, HTTPException
from fastapi.responses import FileResponse, HTMLResponse

from gpupool.airflow.attempts import read_attempts
from gpupool.airflow.pages import find_job, job_page, queues_page
from gpupool.airflow.pool_file import current_pool
from gpupool.airflow.pools import apply_pool
from gpupool.airflow.queues import read_queues
from gpupool.exceptions import PoolFileError
from gpupool.scheduling.waiting import why_it_waits
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


@app.get("/queues", dependencies=[Depends(requires_access_pool("GET"))], response_class=HTMLResponse)
def queues(session: SessionDep) -> str:
    """All queues, as a page."""
    return queues_page(read_queues(session, current_pool()))


@app.get("/job", dependencies=[Depends(requires_access_pool("GET"))], response_class=HTMLResponse)
def job(dag_id: str, run_id: str, task_id: str, session: SessionDep, map_index: str = "-1") -> str:
    """Where one job stands, as a page. Airflow's UI leaves its placeholder in ``map_index`` of an unmapped task."""
    index = int(map_index) if map_index.isdigit() else -1
    found = find_job(read_queues(session, current_pool()), dag_id, run_id, task_id, index)
    return job_page(*(found or (None, None)))


@app.get("/why", dependencies=[Depends(requires_access_pool("GET"))])
def why(dag_id: str, run_id: str, task_id: str, session: SessionDep, map_index: int = -1) -> dict[str, Any]:
    """Why a job waits, for programs; ``waits`` is false if it does not."""
    found = find_job(read_queues(session, current_pool()), dag_id, run_id, task_id, map_index)
    if found is None or found[0] not in found[1].waiting:
        return {"waits": False, "why": None}
    return {"waits": True, "why": why_it_waits(*found)}


@app.get("/report", dependencies=[Depends(requires_access_pool("GET"))])
def latest_report() -> Any:
    """The newest report, as a page."""
    found = sorted(Path(Settings.from_env().reports).glob("daily-*.html"))
    if not found:
        return HTMLResponse("<p>No report yet. The DAG <code>gpupool_report</code> writes it.</p>", 404)
    return FileResponse(found[-1], media_type="text/html")
