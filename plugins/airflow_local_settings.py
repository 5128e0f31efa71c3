"""Airflow's cluster policy is gpupool's."""

from gpupool.airflow.policy import task_instance_mutation_hook, task_policy

__all__ = ["task_instance_mutation_hook", "task_policy"]
