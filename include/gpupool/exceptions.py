"""Every error gpupool raises on purpose.

::

    GpuPoolError
    ├── PoolFileError        the pool file is wrong; carries every finding with file, line, field, remedy
    ├── RequestRefused       a job asks for what its queue may never give
    ├── NoFreeDevice         the worker found too few free devices in time
    ├── JobFailed            an attempt ended badly; carries its outcome and evidence
    ├── BadBatch             telemetry so bad that the run must fail (its rows are already safe)
    └── ApiError             gpupool's own Airflow API answered with an error
"""


class GpuPoolError(Exception):
    """Root of the tree; catch this to catch them all."""


class PoolFileError(GpuPoolError):
    """The pool file cannot be used. ``findings`` holds one sentence per mistake."""

    def __init__(self, findings: list[str]) -> None:
        self.findings = findings
        super().__init__("\n".join(findings))


class RequestRefused(GpuPoolError):
    """A job's request breaks a rule of the pool file; the message says what to change."""


class NoFreeDevice(GpuPoolError):
    """Admission said yes, yet the node has too few free devices."""


class JobFailed(GpuPoolError):
    """An attempt ended with an outcome other than ``succeeded``."""


class BadBatch(GpuPoolError):
    """Too large a share of a telemetry batch was bad."""


class ApiError(GpuPoolError):
    """The gpupool API answered with an error or not at all."""
