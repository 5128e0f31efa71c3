"""Finding accelerators that a task takes without asking a queue."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

# Extended resource names as the vendors' device plugins register them.
_RESOURCE = re.compile(
    r"nvidia\.com/(gpu(\.shared)?|mig-[\w.]+)|amd\.com/gpu|huawei\.com/ascend\w*|intel\.com/gpu|gpu\.intel\.com/\w+|"
    r"habana\.ai/gaudi|google\.com/tpu|cambricon\.com/\w+|\w+\.com/(vgpu|gpu-count)",
    re.IGNORECASE,
)
_VISIBLE = (
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "ASCEND_RT_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
)
_SPECS = (
    "container_resources",
    "executor_config",
    "full_pod_spec",
    "full_job_spec",
    "pod_template_dict",
    "job_template_dict",
    "template_spec",
)
_ENVIRONMENTS = ("env", "env_vars", "environment")


def taken_accelerators(task: Any) -> list[str]:
    """What the task takes, one phrase each: ``nvidia.com/gpu=2 in container_resources``. Empty if it takes none."""
    return [
        *(
            f"{resource}={amount} in {name}"
            for name in _SPECS
            for resource, amount in _resources(_attribute(task, name))
        ),
        *(
            f"{variable} in {name}"
            for name in _ENVIRONMENTS
            for variable in _VISIBLE
            if variable in _variables(_attribute(task, name))
        ),
        *(["GPU device_requests"] if _attribute(task, "device_requests") else []),
    ]


def _attribute(task: Any, name: str) -> Any:
    """The task's attribute, or the fixed argument of a mapped task."""
    if hasattr(task, "partial_kwargs"):
        return task.partial_kwargs.get(name)
    return getattr(task, name, None)


def _resources(value: Any) -> Iterator[tuple[str, str]]:
    """Every accelerator resource with a non-zero amount, however deep in dicts, lists or Kubernetes models."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if isinstance(key, str) and _RESOURCE.fullmatch(key):
                if str(inner) not in ("0", "", "None"):
                    yield key, str(inner)
            else:
                yield from _resources(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _resources(inner)
    elif hasattr(value, "to_dict"):
        yield from _resources(value.to_dict())


def _variables(value: Any) -> set[str]:
    """Names of the environment variables that are set to something, from a dict or a list of Kubernetes V1EnvVar."""
    if isinstance(value, Mapping):
        return {name for name, content in value.items() if content not in ("", None)}
    if isinstance(value, list | tuple):
        return {name for item in value if (name := getattr(item, "name", None)) and getattr(item, "value", None)}
    return set()
