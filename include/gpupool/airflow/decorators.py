"""``@task.gpu``: a Python function as a job on devices of the pool."""

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk.bases.decorator import DecoratedOperator, TaskDecorator, task_decorator_factory

from gpupool.airflow.operators import GpuJobOperator
from gpupool.jobs.function import read_result, write_call

if TYPE_CHECKING:
    from airflow.sdk import Context


class GpuDecoratedOperator(DecoratedOperator, GpuJobOperator):
    """Runs the function in a process of its own on the leased devices.

    As with Airflow's other isolating decorators, the function's source is what travels: it imports what it needs
    inside. ``python`` names the interpreter, so that a job may use an environment of its own.
    """

    custom_operator_name = "@task.gpu"
    template_fields: ClassVar[Sequence[str]] = ("op_args", "op_kwargs", "env", "cwd")
    template_fields_renderers: ClassVar[dict[str, str]] = DecoratedOperator.template_fields_renderers

    def __init__(
        self,
        *,
        python_callable: Callable[..., Any],
        op_args: Collection[Any] | None = None,
        op_kwargs: Mapping[str, Any] | None = None,
        python: str = sys.executable,
        **kwargs: Any,
    ) -> None:
        super().__init__(python_callable=python_callable, op_args=op_args, op_kwargs=op_kwargs, **kwargs)
        self.python = python

    def _command(self, context: "Context", folder: Path) -> list[str]:  # noqa: ARG002
        name = self.python_callable.__name__
        script = write_call(folder, self.get_python_source(), name, list(self.op_args), self.op_kwargs)
        return [self.python, str(script)]

    def _result(self, folder: Path) -> Any:
        return read_result(folder)


def gpu_task(
    python_callable: Callable[..., Any] | None = None, multiple_outputs: bool | None = None, **kwargs: Any
) -> TaskDecorator:
    """``@task.gpu(queue=..., devices=..., flavor=..., max_runtime=...)``; arguments as for GpuJobOperator."""
    return task_decorator_factory(
        python_callable=python_callable,
        multiple_outputs=multiple_outputs,
        decorated_operator_class=GpuDecoratedOperator,
        **kwargs,
    )
