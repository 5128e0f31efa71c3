"""Templates: what jobs of a workload class get unless they say otherwise."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from gpupool.pool.config import Workload

_LIVE = {"PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1"}
_ONE_NODE_TORCH = {
    "MASTER_ADDR": "127.0.0.1",
    "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1",  # a dead rank ends the job instead of hanging it
    "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
}


@dataclass(frozen=True)
class Template:
    """Defaults of one workload class; what the job or its queue says comes on top."""

    description: str
    env: Mapping[str, str]


TEMPLATES: Mapping[Workload, Template] = MappingProxyType(
    {
        Workload.TRAINING: Template("Long runs that write checkpoints.", _LIVE | _ONE_NODE_TORCH),
        Workload.FINETUNE: Template(
            "Shorter runs from a base model.", _LIVE | _ONE_NODE_TORCH | {"TOKENIZERS_PARALLELISM": "false"}
        ),
        Workload.BATCH: Template("Scoring and preprocessing that may start over at any time.", _LIVE),
        Workload.EXPERIMENT: Template("Trying things out.", _LIVE),
        Workload.INFERENCE: Template("Serving a model for a while.", _LIVE),
        Workload.AGENT: Template("Agents that call models.", _LIVE),
    }
)
