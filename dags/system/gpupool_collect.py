"""Every minute: sample the devices, judge the samples, land the good ones in the lake and quarantine the bad."""

from datetime import timedelta

from airflow.sdk import DAG, CronTriggerTimetable, task

from gpupool.airflow import steps

with DAG(
    "gpupool_collect",
    schedule=CronTriggerTimetable("* * * * *", timezone="UTC", run_immediately=True),
    max_active_runs=2,
    dagrun_timeout=timedelta(minutes=5),
    tags=["gpupool", "system"],
    default_args={"owner": "gpupool"},
    doc_md=__doc__,
):
    task(steps.collect)()
