"""Shows gpupool in Airflow's UI and serves its API."""

from gpupool.airflow.plugin import GpuPoolPlugin

__all__ = ["GpuPoolPlugin"]
