"""A request's headers, query and form as user code gets them: dicts with the methods that web frameworks give them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .shapes import Meta


class MultiDict(dict[str, Any]):
    """Fields of a query or a form: `query_params` of predict(), and `payload` of a form.

    Values are str; a file of a form is an UploadedFile. If a name came several times, `[name]` is its last value and
    `getlist(name)` has all. `[name]` raises KeyError if the name did not come.
    """

    __slots__ = ("_pairs",)

    def __init__(self, pairs: Sequence[tuple[str, Any]] = ()) -> None:
        """`pairs`: a sequence of (name, value), as they came."""
        super().__init__(pairs)
        self._pairs = pairs

    def getlist(self, name: str) -> list[Any]:
        """All values of this name, in order; empty if there is none."""
        return [value for found, value in self._pairs if found == name]

    def multi_items(self) -> list[tuple[str, Any]]:
        """All fields as (name, value), in order."""
        return [(name, value) for name, value in self._pairs]


class Headers(dict[str, str]):
    """Headers by their names in lower case, found in any case: `headers` of predict(). Values are str.

    If one came several times, `[name]` has its values joined and `getlist(name)` has each. `[name]` raises KeyError if
    the header did not come.
    """

    __slots__ = ("_repeated",)

    def __init__(
        self,
        headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
        repeated: Mapping[str, list[str]] | None = None,
    ) -> None:
        """`repeated`: the values of those that came several times, by name."""
        super().__init__(headers)
        self._repeated = repeated or {}

    def __missing__(self, name: Any) -> str:
        known = _lower(name)
        if super().__contains__(known):
            return self[known]
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or super().__contains__(_lower(name))

    def get(self, name: Any, default: Any = None) -> Any:
        """The value of this header in any case; `default` if it did not come."""
        return self[name] if name in self else default  # noqa: SIM401

    def getlist(self, name: str) -> list[str]:
        """All values of this header, in order; empty if there is none."""
        if name not in self:
            return []
        return list(self._repeated.get(_lower(name)) or [self[name]])


def argument(name: str, meta: Meta) -> Headers | MultiDict:
    """`headers` or `query_params` of predict(), from what the gateway sent beside the body."""
    if name == "headers":
        return Headers(meta["headers"], meta.get("repeated_headers"))
    return MultiDict(meta["query_params"])


def _lower(name: Any) -> Any:
    return name.lower() if isinstance(name, str) else name
