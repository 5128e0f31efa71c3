"""How Airflow learns of ``@task.gpu``: the package presents itself as a provider."""

from typing import Any


def get_provider_info() -> dict[str, Any]:
    """Provider metadata, as Airflow's provider_info schema asks."""
    return {
        "package-name": "gpupool",
        "name": "gpupool",
        "description": "A pool of GPUs, CPUs and NPUs operated by Airflow.",
        "versions": ["0.1.0"],
        "task-decorators": [{"name": "gpu", "class-name": "gpupool.airflow.decorators.gpu_task"}],
    }
