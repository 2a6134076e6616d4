"""The interface of plug-ins: every name that a plug-in may rely on. `API_VERSION` changes when one of them does.

A plug-in is a Python file, or a module, with two names::

    API_VERSION = 1
    PLUGIN = Plugin(rule_values=[...], checkers=[...])

notebooks/guide/plugins.md tells how to write each part. In a notebook, `load` does what ``--plugin`` does.
"""

from __future__ import annotations

from faults.bounds import FaultBounds, Limits, aim
from faults.kind import (
    BROKER,
    CLUSTER,
    DISTURBED,
    KRAFT,
    LINK,
    MACHINES,
    MS,
    OTHER_BROKER,
    OTHER_REPLICA,
    PERMILLE,
    PROCESS,
    STALLED,
    STOPPED,
    THE_CONTROLLER,
    THE_LEADER,
    Amount,
    Duration,
    FaultKind,
    Param,
    Targets,
)
from faults.plan import (
    CONTROLLER,
    FOLLOWERS,
    ISR_MEMBER,
    LAST_MEMBER,
    LAST_TARGET,
    LEADER,
    OUTSIDER,
    STEP_BROKER,
    Fault,
    Trigger,
)
from scenarios.format.plugin import API_VERSION, DecisionFunctions, Plugin, Rule, RuleValue, StepProbe
from scenarios.format.plugins import load, loaded
from sim.checkers.checker import (
    ALL_RECORDS,
    ALWAYS,
    ANY_RECORD,
    NEVER_DIVERGES,
    NOT_PROMISED,
    READABLE,
    RECORDS_OR_NONE,
    Checker,
    Finding,
    RunEnd,
    warning,
)
from sim.config import ELR as WITH_ELR
from sim.config import EVERYWHERE
from sim.config import KRAFT as WITH_KRAFT
from sim.config import ZOOKEEPER as WITH_ZOOKEEPER
from sim.history import steps
from sim.hosts.cluster import Cluster
from sim.kernel.streams import Stream, choice, integer
from sim.protocol.decision_points import (
    POINTS,
    Election,
    EligibleReplicas,
    EndOffsetHidden,
    EpochRecorded,
    FetcherRestart,
    Follower,
    HighWatermark,
    IsrAccepted,
    IsrJoin,
    IsrLeave,
    Reassignment,
    ReplicaStart,
    Truncation,
)

__all__ = [
    "ALL_RECORDS",
    "ALWAYS",
    "ANY_RECORD",
    "API_VERSION",
    "BROKER",
    "CLUSTER",
    "CONTROLLER",
    "DISTURBED",
    "EVERYWHERE",
    "FOLLOWERS",
    "ISR_MEMBER",
    "KRAFT",
    "LAST_MEMBER",
    "LAST_TARGET",
    "LEADER",
    "LINK",
    "MACHINES",
    "MS",
    "NEVER_DIVERGES",
    "NOT_PROMISED",
    "OTHER_BROKER",
    "OTHER_REPLICA",
    "OUTSIDER",
    "PERMILLE",
    "POINTS",
    "PROCESS",
    "READABLE",
    "RECORDS_OR_NONE",
    "STALLED",
    "STEP_BROKER",
    "STOPPED",
    "THE_CONTROLLER",
    "THE_LEADER",
    "WITH_ELR",
    "WITH_KRAFT",
    "WITH_ZOOKEEPER",
    "Amount",
    "Checker",
    "Cluster",
    "DecisionFunctions",
    "Duration",
    "Election",
    "EligibleReplicas",
    "EndOffsetHidden",
    "EpochRecorded",
    "Fault",
    "FaultBounds",
    "FaultKind",
    "FetcherRestart",
    "Finding",
    "Follower",
    "HighWatermark",
    "IsrAccepted",
    "IsrJoin",
    "IsrLeave",
    "Limits",
    "Param",
    "Plugin",
    "Reassignment",
    "ReplicaStart",
    "Rule",
    "RuleValue",
    "RunEnd",
    "StepProbe",
    "Stream",
    "Targets",
    "Trigger",
    "Truncation",
    "aim",
    "choice",
    "integer",
    "load",
    "loaded",
    "steps",
    "warning",
]
