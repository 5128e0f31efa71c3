"""Every hour: build device_hour and job_usage from samples and attempts."""

from datetime import timedelta

from airflow.sdk import DAG, CronTriggerTimetable, task

from gpupool.airflow import steps

with DAG(
    "gpupool_build",
    schedule=CronTriggerTimetable("5 * * * *", timezone="UTC"),
    max_active_runs=1,
    dagrun_timeout=timedelta(minutes=30),
    tags=["gpupool", "system"],
    default_args={"owner": "gpupool", "retries": 2, "retry_delay": timedelta(minutes=1)},
    doc_md=__doc__,
):
    task(steps.build)()
