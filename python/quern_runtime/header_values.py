"""Values of headers with parameters, such as `text/plain; charset=utf-8`, read in one pass over bounded text.

The standard library's reader (email.message) takes time that grows with the square of the number of semicolons.
"""

from __future__ import annotations

from .charsets import decode
from .faults import PayloadError
from .percent import unquoted

# Browsers send three at most.
PARAMETERS_MAX = 32


def parse_header_value(text: str) -> tuple[str, dict[str, str]]:
    """(the value in lower case, its parameters by name in lower case).

    Of two parameters with one name the first counts. Raises PayloadError for over PARAMETERS_MAX parameters.
    """
    value, at = _token(text, 0, ";")
    parameters: dict[str, str] = {}
    read = 0
    while at < len(text):
        # Empty ones count too.
        read += 1
        if read > PARAMETERS_MAX:
            raise PayloadError("a header of the request has over %d parameters" % PARAMETERS_MAX)
        name, at = _token(text, at + 1, ";=")
        content = ""
        if at < len(text) and text[at] == "=":
            content, at = _content(text, at + 1)
        if name:
            parameters.setdefault(name.lower(), content)
    return value.lower(), parameters


def text_parameter(parameters: dict[str, str], name: str) -> str | None:
    """A parameter that may be in the extended form of RFC 8187, `name*=utf-8''%C3%A9`; None if there is none."""
    extended = parameters.get(name + "*")
    if extended is None:
        return parameters.get(name)
    charset, _, rest = extended.partition("'")
    _, quote, content = rest.partition("'")
    if not quote:
        return extended
    return decode(unquoted(content.encode("utf-8", "replace")), charset or "utf-8", "the parameter %s*" % name)


def _token(text: str, at: int, ends: str) -> tuple[str, int]:
    """(the text up to one of `ends`, without white space around it, the position of that end)."""
    end = min((found for found in (text.find(mark, at) for mark in ends) if found >= 0), default=len(text))
    return text[at:end].strip(), end


def _content(text: str, at: int) -> tuple[str, int]:
    """A parameter's content, quoted or not, and the position of the next semicolon."""
    while at < len(text) and text[at] in " \t":
        at += 1
    if at == len(text) or text[at] != '"':
        return _token(text, at, ";")
    start, at = at + 1, at + 1
    while at < len(text) and text[at] != '"':
        # An escaped quote does not end it.
        at += 2 if text[at] == "\\" else 1
    content = text[start:at].replace("\\\\", "\\").replace('\\"', '"')
    _, end = _token(text, at + 1, ";")
    return content, end
