"""Team vision: score images with a program that knows nothing of Airflow."""

import sys

from airflow.sdk import DAG

from gpupool.airflow.operators import GpuJobOperator

with DAG(
    "example_vision_batch",
    schedule=None,
    tags=["example", "team:vision"],
    default_args={"owner": "vision"},
    doc_md=__doc__,
):
    GpuJobOperator(
        task_id="score",
        queue="vision-batch",
        devices=1,
        max_runtime="30m",
        command=[sys.executable, "vision/find_edges.py", "--seconds", "40"],
    )
