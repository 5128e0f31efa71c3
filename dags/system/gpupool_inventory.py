"""Every five minutes: discover this node, keep the ledger, bring Airflow's pools to the pool file."""

from datetime import timedelta

from airflow.sdk import DAG, CronTriggerTimetable, task

from gpupool.airflow import steps

with DAG(
    "gpupool_inventory",
    schedule=CronTriggerTimetable("*/5 * * * *", timezone="UTC", run_immediately=True),
    max_active_runs=1,
    dagrun_timeout=timedelta(minutes=10),
    tags=["gpupool", "system"],
    default_args={"owner": "gpupool"},
    doc_md=__doc__,
):
    task(steps.discover)()
