"""Every day: write the report. It lies in the reports folder and behind "GPU report" in Airflow's menu."""

from datetime import timedelta

from airflow.sdk import DAG, CronTriggerTimetable, task

from gpupool.airflow import steps

with DAG(
    "gpupool_report",
    schedule=CronTriggerTimetable("15 0 * * *", timezone="UTC"),
    max_active_runs=1,
    dagrun_timeout=timedelta(minutes=30),
    tags=["gpupool", "system"],
    default_args={"owner": "gpupool", "retries": 2, "retry_delay": timedelta(minutes=1)},
    doc_md=__doc__,
):
    task(steps.report)()
