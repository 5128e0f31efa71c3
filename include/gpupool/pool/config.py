"""The pool file's models: teams, flavors, queues, nodes and the rules of telemetry.

Every mistake they find carries a remedy, so that :mod:`gpupool.pool.file` can name line, field and what to change.
"""

from datetime import timedelta
from decimal import Decimal
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Annotated, Literal, Self
from zoneinfo import ZoneInfo, available_timezones

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from gpupool.pool.outcomes import Outcome
from gpupool.pool.quantities import Duration, Price

Name = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?$")]
Devices = Annotated[int, Field(ge=0, le=1_000_000)]


class Workload(StrEnum):
    """Workload class of a queue."""

    TRAINING = "training"
    FINETUNE = "finetune"
    INFERENCE = "inference"
    BATCH = "batch"
    EXPERIMENT = "experiment"
    AGENT = "agent"


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Team(_Model):
    """Who pays and who may use what."""

    description: str = ""
    share: float = Field(default=1.0, gt=0, description="Weight in fair share.")
    members: tuple[str, ...] = Field(
        default=(), description="DAG owners and user names of the team; its own name always counts."
    )

    def has(self, name: str, person: str) -> bool:
        """Does ``person`` (a DAG owner or a user) belong to this team, whose name is ``name``?"""
        return person == name or person in self.members


class Flavor(_Model):
    """A class of interchangeable devices, recognised by labels."""

    match: dict[str, str] = Field(
        min_length=1,
        description="Label -> pattern (`*` and `?` allowed). All must match; the first flavor wins.",
    )
    price_per_device_hour: Price
    description: str = ""

    def matches(self, labels: dict[str, str]) -> bool:
        """Do these device labels belong to the flavor?"""
        return all(fnmatchcase(labels.get(key, ""), pattern) for key, pattern in self.match.items())


class Quota(_Model):
    """What one queue may use of one flavor, in devices."""

    nominal: Devices = Field(description="The queue's own devices.")
    borrow: Devices = Field(default=0, description="How many more it may take from idle quota of its cohort.")
    lend: Devices | None = Field(default=None, description="How many of its own others may take; default all.")

    @model_validator(mode="after")
    def _lends_what_it_has(self) -> Self:
        if self.lend is not None and self.lend > self.nominal:
            raise PydanticCustomError(
                "lend",
                "lends {lend} devices but owns {nominal}",
                {"lend": self.lend, "nominal": self.nominal, "remedy": "Set lend to nominal or less."},
            )
        return self

    @property
    def ceiling(self) -> int:
        """The most the queue can ever hold at once."""
        return self.nominal + self.borrow


class RetryRule(_Model):
    """Which outcomes are worth another try."""

    attempts: int = Field(default=2, ge=0, le=20, description="Further tries after the first.")
    delay: Duration = timedelta(minutes=1)
    on: tuple[Outcome, ...] = (
        Outcome.FAILED_NODE_LOST,
        Outcome.FAILED_NETWORK,
        Outcome.FAILED_HARDWARE,
        Outcome.FAILED_NO_DEVICE,
        Outcome.FAILED_KILLED,
    )
    hold_quota: bool = Field(default=False, description="Keep the quota during the delay.")


class IdleRule(_Model):
    """What happens to a job that leaves its devices idle."""

    after: Duration = timedelta(minutes=30)
    action: Literal["none", "warn", "stop"] = "warn"


class Queue(_Model):
    """Where jobs of one team and one workload class wait."""

    team: Name
    workload: Workload
    quota: dict[Name, Quota] = Field(min_length=1, description="Flavor -> quota; the first is the default flavor.")
    description: str = ""
    cohort: Name | None = Field(default=None, description="Queues of one cohort lend each other idle quota.")
    priority: int = Field(default=100, ge=0, le=1_000_000)
    max_runtime: Duration = timedelta(days=1)
    max_devices_per_job: int | None = Field(default=None, ge=1)
    grace: Duration = Field(default=timedelta(seconds=30), description="Between SIGTERM and SIGKILL.")
    retry: RetryRule = RetryRule()
    idle: IdleRule = IdleRule()

    @property
    def default_flavor(self) -> str:
        """The flavor of a job that names none."""
        return next(iter(self.quota))

    def largest_job(self, flavor: str) -> int:
        """The most devices of ``flavor`` that one job may ever ask for."""
        ceiling = self.quota[flavor].ceiling
        return min(ceiling, self.max_devices_per_job or ceiling)


class NodeRule(_Model):
    """Facts of nodes that no discovery can know; ``name`` may be a pattern."""

    name: str = Field(min_length=1, description="A host name, or a pattern such as `gpu-*`; the first match wins.")
    site: str = "default"
    cluster: str = "default"
    owner: Name | None = Field(default=None, description="Team that bought the node.")
    cordoned: bool = False
    labels: dict[str, str] = {}

    @property
    def is_pattern(self) -> bool:
        """Does the name match many nodes?"""
        return any(char in self.name for char in "*?[")


class TelemetryRules(_Model):
    """How devices are sampled and when a batch is too bad to go on."""

    readings: int = Field(default=5, ge=1, le=60, description="Readings per run of the collect DAG.")
    interval: Duration = timedelta(seconds=10)
    max_gap: Duration = Field(
        default=timedelta(minutes=3),
        description="A sample speaks for the time until the next, but no longer.",
    )
    max_bad_share: float = Field(default=0.2, ge=0, le=1, description="A batch with a larger share of bad rows fails.")


class Pool(_Model):
    """The whole pool file."""

    version: Literal[1]
    currency: str = Field(default="USD", pattern=r"^[A-Z]{3}$", description="ISO 4217 code of all prices.")
    timezone: str = Field(default="UTC", description="IANA time zone in which reports cut days.")
    teams: dict[Name, Team] = Field(min_length=1)
    flavors: dict[Name, Flavor] = Field(min_length=1)
    queues: dict[Name, Queue] = Field(min_length=1)
    nodes: tuple[NodeRule, ...] = ()
    telemetry: TelemetryRules = TelemetryRules()

    @field_validator("timezone")
    @classmethod
    def _known_timezone(cls, value: str) -> str:
        if value not in available_timezones():
            raise PydanticCustomError(
                "timezone", "is not an IANA time zone", {"remedy": "Write a name such as Europe/Berlin."}
            )
        return value

    @property
    def zone(self) -> ZoneInfo:
        """The report time zone."""
        return ZoneInfo(self.timezone)

    def flavor_of(self, labels: dict[str, str]) -> str | None:
        """The first flavor whose rule matches the labels, or None."""
        return next((name for name, flavor in self.flavors.items() if flavor.matches(labels)), None)

    def node_rule(self, name: str) -> NodeRule:
        """The first rule that matches the node's name, or the defaults."""
        return next((rule for rule in self.nodes if fnmatchcase(name, rule.name)), NodeRule(name=name))

    def price(self, flavor: str) -> Decimal:
        """Price of one device-hour of ``flavor``, in ``currency``."""
        return self.flavors[flavor].price_per_device_hour

    def dangling_names(self) -> list[tuple[tuple[str | int, ...], str, str, str]]:
        """References to teams and flavors that do not exist: (where, kind, value, remedy) each."""
        found: list[tuple[tuple[str | int, ...], str, str, str]] = []
        for queue_name, queue in self.queues.items():
            if queue.team not in self.teams:
                found.append((("queues", queue_name, "team"), "team", queue.team, _choose(self.teams)))
            found += [
                (("queues", queue_name, "quota", flavor), "flavor", flavor, _choose(self.flavors))
                for flavor in queue.quota
                if flavor not in self.flavors
            ]
        found += [
            (("nodes", i, "owner"), "team", node.owner, _choose(self.teams))
            for i, node in enumerate(self.nodes)
            if node.owner is not None and node.owner not in self.teams
        ]
        return found


def _choose(known: dict[str, object] | dict[str, Team] | dict[str, Flavor]) -> str:
    return "Use one of: " + ", ".join(known) + "."
