"""Once, on a fresh installation: an example job of each team, its samples, the tables, the first report."""

from datetime import timedelta

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import DAG

with DAG(
    "example_first_loop",
    schedule="@once",
    catchup=False,
    tags=["example"],
    # On a fresh installation the other DAG files may be parsed a little later than this one.
    default_args={"owner": "gpupool", "retries": 6, "retry_delay": timedelta(seconds=10)},
    doc_md=__doc__,
):

    def run(dag_id: str) -> TriggerDagRunOperator:
        return TriggerDagRunOperator(task_id=dag_id, trigger_dag_id=dag_id, wait_for_completion=True, poke_interval=3)

    jobs = [run("example_nlp_training"), run("example_vision_batch")]
    jobs >> run("gpupool_collect") >> run("gpupool_build") >> run("gpupool_report")
