"""A form per queue: submit a job from Airflow's trigger page, without a DAG of your own."""

from airflow.sdk import DAG  # noqa: F401 - Airflow looks for this word before it parses a file

from gpupool.airflow.form import form_dags
from gpupool.airflow.pool_file import current_pool

globals().update({dag.dag_id: dag for dag in form_dags(current_pool())})
