"""The Airflow plugin: gpupool's API and its entries in Airflow's menu."""

import sys
from typing import Any, ClassVar

from airflow.plugins_manager import AirflowPlugin


def _api() -> list[dict[str, Any]]:
    """The app is built in the API server only; every other process loads plugins as well and would pay for it."""
    if "api-server" not in sys.argv and "airflow.api_fastapi.app" not in sys.modules:
        return []
    from gpupool.airflow.api import app

    return [{"app": app, "url_prefix": "/gpupool", "name": "gpupool"}]


class GpuPoolPlugin(AirflowPlugin):
    """Registered from ``plugins/gpupool_plugin.py``."""

    name = "gpupool"
    fastapi_apps: ClassVar[list[dict[str, Any]]] = _api()
    external_views: ClassVar[list[dict[str, Any]]] = [
        {
            "name": "GPU queues",
            "href": "/gpupool/queues",
            "destination": "nav",
            "url_route": "gpu-queues",
            "category": "browse",
        },
        {
            "name": "GPU queue",
            "href": "/gpupool/job?dag_id={DAG_ID}&run_id={RUN_ID}&task_id={TASK_ID}&map_index={MAP_INDEX}",
            "destination": "task_instance",
            "url_route": "gpu-job",
        },
        {
            "name": "GPU report",
            "href": "/gpupool/report",
            "destination": "nav",
            "url_route": "gpu-report",
            "category": "browse",
        },
    ]
