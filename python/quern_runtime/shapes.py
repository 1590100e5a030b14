"""Types that several modules of the runtime share, for readers and type checkers.

No module imports this file when it runs: annotations are text there, and cost nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, Union

if TYPE_CHECKING:
    from .calls import Request
    from .streams import Stream

Bytes = Union[bytes, bytearray, memoryview]
# The message for the caller: (type, body).
Message = tuple[int, bytes]
Outcome = Union[Message, "Stream"]
# One unit of work for a driver: a request, a batch of requests, or the next piece of a stream.
Unit = Union["Request", list["Request"], "Stream"]
# A piece from a generator of user code, before it is encoded.
Pieces = Union[Iterator[Any], AsyncIterator[Any]]
# The arguments of predict() by name.
Arguments = dict[str, Any]
# The head of a response, as JSON: `status`, `headers`, `format`, and the counts for monitoring.
Head = dict[str, Any]
# The headers of a response: [[name, value]].
HeaderPairs = list[list[str]]


class Meta(TypedDict, total=False):
    """The message before a PREDICT (`PredictMeta` in src/protocol/messages.ts). `content_type` is missing for JSON."""

    content_type: str
    headers: dict[str, str]
    repeated_headers: dict[str, list[str]]
    query_params: list[tuple[str, str]]


class BatchingInit(TypedDict):
    """`server_side_batching` of the configuration."""

    max_batch_size: int
    interval_ms: float


class _MonitoringNeeds(TypedDict):
    model_type: str


class MonitoringInit(_MonitoringNeeds, total=False):
    """`monitoring` of the configuration."""

    key: str | None


class _InitNeeds(TypedDict):
    api_id: str
    project: str
    path: str
    api_config: str
    concurrency: int


class Init(_InitNeeds, total=False):
    """INIT: the configuration of a worker (`Init` in src/protocol/messages.ts).

    `api_config` and `job_config` are JSON.
    """

    python_path: str | None
    job_config: str | None
    job_spec: dict[str, Any] | None
    threads: int
    batching: BatchingInit | None
    monitoring: MonitoringInit | None
    response: str
    max_requests: int
    may_be_reused: bool
    log_file: str
    has_output: bool
    needs_value_per_item: bool


class HttpFields(TypedDict, total=False):
    """The response that an exception like HTTPException asks for."""

    status_code: int
    detail: Any


class Fault(HttpFields):
    """An exception of user code, as the other side gets it (`WorkerFault` in src/protocol/messages.ts)."""

    stage: str
    type: str
    message: str
    traceback: str


class DiedIn(TypedDict):
    """The delivery that the previous process had in hand when it died."""

    epoch: int
    delivery: int
    batch_index: int


class Driver(Protocol):
    """Where predict() runs: see drivers.py and tasks.py."""

    @property
    def is_async(self) -> bool: ...

    @property
    def has_room(self) -> bool: ...

    @property
    def is_idle(self) -> bool: ...

    def start(self, unit: Unit) -> None: ...

    def collect(self) -> None: ...

    def cancel(self, request: Request) -> None: ...
