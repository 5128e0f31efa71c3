"""``GpuJobOperator``: the one entrance for jobs that need devices."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from gpupool.airflow.pool_file import current_pool
from gpupool.exceptions import JobFailed, NoFreeDevice
from gpupool.pool.config import Queue
from gpupool.pool.outcomes import Outcome
from gpupool.pool.quantities import parse_duration
from gpupool.pool.request import Request, check_request
from gpupool.settings import Settings

if TYPE_CHECKING:
    from airflow.sdk import Context

    from gpupool.airflow.attempt import Attempt
    from gpupool.jobs.process import JobSpec, ProcessJob
    from gpupool.jobs.verdict import Verdict


class GpuJobOperator(BaseOperator):
    """Run a command on devices of the pool.

    :param queue: gpupool queue to wait in (a queue of the pool file, not an executor's queue).
    :param command: program and arguments; a plain string is run by ``bash -c``. (templated)
    :param devices: how many devices, all on one node.
    :param flavor: device class; default is the queue's first.
    :param max_runtime: stopped after this (``"6h"`` or a timedelta); default is the queue's.
    :param env: variables added to the job's environment. (templated)
    :param cwd: working folder; default is the folder of the DAG file. (templated)

    The job sees its devices and only those (``CUDA_VISIBLE_DEVICES`` by UUID; on CPU cores by affinity), and finds in
    ``GPUPOOL_ARTIFACTS`` a folder that stays the same over its tries. Airflow's pool, slots and weight are filled in
    by gpupool's cluster policy. ``retries`` says how often a job is tried again (default: the queue's retry rule);
    after which outcomes is always the queue's rule.
    """

    is_gpupool_job = True
    template_fields: ClassVar[Sequence[str]] = ("command", "env", "cwd")
    ui_color = "#e6f4ea"

    def __init__(
        self,
        *,
        queue: str,
        command: str | Sequence[str] = (),
        devices: int = 1,
        flavor: str | None = None,
        max_runtime: str | timedelta | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        **kwargs: Any,
    ) -> None:
        self.left_to_queue = {"retries", "retry_delay"} - {*(kwargs.get("default_args") or {}), *kwargs}
        super().__init__(**kwargs)
        self.gpu_queue = queue
        self.command = command
        self.devices = devices
        self.flavor = flavor
        self.max_runtime = None if max_runtime is None else parse_duration(max_runtime)
        self.env = env
        self.cwd = cwd
        self._job: ProcessJob | None = None

    def execute(self, context: "Context") -> Any:
        """Lease devices, run the job, keep the attempt's facts, and end as its outcome says."""
        calls = Settings.from_env().state / "calls"
        calls.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=calls) as folder:
            self._run(context, self._command(context, Path(folder)))
            return self._result(Path(folder))

    def on_kill(self) -> None:
        """Airflow stops the task: ask the job to end. Its guardian sees to it even if this process is killed next."""
        if self._job is not None:
            self._job.stop("user")

    def _request(self, context: "Context") -> Request:  # noqa: ARG002 - forms read it
        return check_request(
            current_pool(),
            owner=self.owner,
            queue=self.gpu_queue,
            flavor=self.flavor,
            devices=self.devices,
            max_runtime=self.max_runtime,
        )

    def _command(self, context: "Context", folder: Path) -> list[str]:  # noqa: ARG002 - functions need both
        if not self.command:
            raise AirflowFailException(f"Task {self.task_id!r} has no command. Set GpuJobOperator(command=...).")
        return ["bash", "-c", self.command] if isinstance(self.command, str) else [str(part) for part in self.command]

    def _result(self, folder: Path) -> Any:  # noqa: ARG002 - functions read it
        return None

    def _run(self, context: "Context", command: Sequence[str]) -> None:
        from gpupool.airflow.attempt import Attempt
        from gpupool.jobs.process import ProcessJob
        from gpupool.jobs.verdict import Verdict, judge

        pool, request, settings = current_pool(), self._request(context), Settings.from_env()
        self._require_admission(request)
        attempt = Attempt.of(context, request, pool)
        try:
            devices, lease = attempt.lease(pool, settings, on_wait=self.log.info)
        except NoFreeDevice as error:
            verdict = Verdict(Outcome.FAILED_NO_DEVICE, str(error))
            attempt.closed(verdict, None)
            self._finish(verdict, pool.queues[request.queue])
            return
        self.log.info("Leased %s for queue %s.", ", ".join(d.device_id for d in devices), request.queue)
        self._job = ProcessJob(self._spec(attempt, pool.queues[request.queue], settings, command), devices, lease)
        self._job.start()
        attempt.opened(devices)
        ending = self._job.wait(self.log.info)
        verdict = judge(ending)
        attempt.closed(verdict, ending)
        self._finish(verdict, pool.queues[request.queue])

    def _require_admission(self, request: Request) -> None:
        """What runs must be what was admitted: the same pool, a slot for each device."""
        if (self.pool, self.pool_slots) != (request.pool, request.devices):
            raise AirflowFailException(
                f"Task {self.task_id!r} asks for {request.devices} slots of pool {request.pool!r} and was admitted to "
                f"{self.pool_slots} of {self.pool!r}. Give queue, flavor and devices in partial(), not in "
                "expand_kwargs(); if it is not mapped, gpupool's cluster policy is not installed on every Airflow host."
            )

    def _spec(self, attempt: "Attempt", queue: Queue, settings: Settings, command: Sequence[str]) -> "JobSpec":
        from gpupool.jobs.process import JobSpec
        from gpupool.jobs.templates import TEMPLATES

        return JobSpec(
            command=command,
            cwd=Path(self.cwd or (self.dag.folder if self.dag else Path.cwd())),
            max_runtime=attempt.request.max_runtime,
            grace=queue.grace,
            env={
                **TEMPLATES[queue.workload].env,
                "GPUPOOL_QUEUE": attempt.request.queue,
                "GPUPOOL_ATTEMPT": attempt.attempt_id,
                "GPUPOOL_ARTIFACTS": str(attempt.artifacts(settings)),
                **(self.env or {}),
            },
        )

    def _finish(self, verdict: "Verdict", queue: Queue) -> None:
        """End the task as its outcome says: well, for another try, or for good."""
        self.log.info("Outcome %s", verdict)
        if verdict.outcome is Outcome.SUCCEEDED:
            return
        failure = AirflowException if verdict.outcome in queue.retry.on else AirflowFailException
        raise failure(str(verdict)) from JobFailed(verdict.outcome)
