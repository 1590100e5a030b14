"""What user code gets of a request's headers, query and form: plain dicts with the methods that web frameworks give them."""


class MultiDict(dict):
    """Fields of a query or a form. If a name came several times, `[name]` is its last value and `getlist(name)` has all."""

    __slots__ = ("_pairs",)

    def __init__(self, pairs=()):
        """`pairs`: a sequence of (name, value), as they came."""
        super().__init__(pairs)
        self._pairs = pairs

    def getlist(self, name):
        """All values of this name, in order; empty if there is none."""
        return [value for found, value in self._pairs if found == name]

    def multi_items(self):
        """All fields as (name, value), in order."""
        return [(name, value) for name, value in self._pairs]


class Headers(dict):
    """Headers by their names in lower case, found in any case. If one came several times, `[name]` has its values joined."""

    __slots__ = ("_repeated",)

    def __init__(self, headers=(), repeated=None):
        """`repeated`: the values of those that came several times, by name."""
        super().__init__(headers)
        self._repeated = repeated or {}

    def __missing__(self, name):
        known = _lower(name)
        if super().__contains__(known):
            return self[known]
        raise KeyError(name)

    def __contains__(self, name):
        return super().__contains__(name) or super().__contains__(_lower(name))

    def get(self, name, default=None):
        return self[name] if name in self else default

    def getlist(self, name):
        """All values of this header, in order; empty if there is none."""
        if name not in self:
            return []
        return list(self._repeated.get(_lower(name)) or [self[name]])


def argument(name, meta):
    """`headers` or `query_params` of predict(), from what the gateway sent beside the body."""
    if name == "headers":
        return Headers(meta.get("headers") or (), meta.get("repeated_headers"))
    return MultiDict(meta.get("query_params") or ())


def _lower(name):
    return name.lower() if isinstance(name, str) else name
