"""The closed list of ways an attempt can end, each with a sentence a person understands."""

from enum import StrEnum


class Outcome(StrEnum):
    """How an attempt ended."""

    SUCCEEDED = "succeeded"
    FAILED_OOM = "failed.oom"
    FAILED_IMAGE = "failed.image"
    FAILED_DRIVER = "failed.driver"
    FAILED_DATA = "failed.data"
    FAILED_USER_CODE = "failed.user_code"
    FAILED_HARDWARE = "failed.hardware"
    FAILED_NODE_LOST = "failed.node_lost"
    FAILED_NETWORK = "failed.network"
    FAILED_KILLED = "failed.killed"
    FAILED_NO_DEVICE = "failed.no_device"
    STOPPED_USER = "stopped.user"
    STOPPED_TIMEOUT = "stopped.timeout"
    STOPPED_IDLE = "stopped.idle"
    PREEMPTED = "preempted"
    LOST = "lost"

    @property
    def sentence(self) -> str:
        """What happened, in one sentence."""
        return _SENTENCES[self]


_SENTENCES = {
    Outcome.SUCCEEDED: "The job ended with exit code 0.",
    Outcome.FAILED_OOM: "The job ran out of memory (of the device or of the node).",
    Outcome.FAILED_IMAGE: "The job's environment lacks a program or a library it needs.",
    Outcome.FAILED_DRIVER: "The device driver does not fit the libraries of the job.",
    Outcome.FAILED_DATA: "The job could not read or write its data.",
    Outcome.FAILED_USER_CODE: "The job's own code failed.",
    Outcome.FAILED_HARDWARE: "A device reported a hardware error.",
    Outcome.FAILED_NODE_LOST: "The node of the job went away.",
    Outcome.FAILED_NETWORK: "The job lost a network connection it needed.",
    Outcome.FAILED_KILLED: "Something other than gpupool killed the job's process.",
    Outcome.FAILED_NO_DEVICE: "The node had too few free devices for the job in time.",
    Outcome.STOPPED_USER: "A person stopped the job.",
    Outcome.STOPPED_TIMEOUT: "The job ran longer than its max_runtime and was stopped.",
    Outcome.STOPPED_IDLE: "The job left its devices idle and was stopped by its queue's rule.",
    Outcome.PREEMPTED: "A job with a stronger claim took the devices.",
    Outcome.LOST: "The worker disappeared before it could say how the job ended.",
}
