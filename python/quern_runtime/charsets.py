"""Text in the charsets of web pages (the WHATWG's list), and no other codec of Python.

Among those are slow ones (`punycode`, `idna` take the square of the length) and codecs that are not charsets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .faults import PayloadError

if TYPE_CHECKING:
    from .shapes import Bytes

_NAMES = """
utf-8 utf8 utf-8-sig us-ascii ascii utf-16 utf-16le utf-16be utf-32 utf-32le utf-32be
iso-8859-1 latin1 latin-1 iso8859-1 iso-8859-2 latin2 iso-8859-3 iso-8859-4 iso-8859-5 iso-8859-6 iso-8859-7 iso-8859-8
iso-8859-9 iso-8859-10 iso-8859-11 iso-8859-13 iso-8859-14 iso-8859-15 iso-8859-16
windows-874 windows-1250 windows-1251 windows-1252 windows-1253 windows-1254 windows-1255 windows-1256 windows-1257
windows-1258 cp1250 cp1251 cp1252 cp437 cp850 cp866 ibm866 macintosh koi8-r koi8-u
shift-jis sjis cp932 euc-jp iso-2022-jp gb2312 gbk gb18030 big5 euc-kr cp949 tis-620
"""
_CODECS = {name: name for name in _NAMES.split()}
# Python knows these by other names.
_CODECS.update(
    {
        "macintosh": "mac-roman",
        "windows-874": "cp874",
        "shift-jis": "shift_jis",
        "x-sjis": "shift_jis",
        "windows-31j": "cp932",
        "ks-c-5601-1987": "cp949",
        "iso-8859-8-i": "iso-8859-8",
    }
)


def decode(data: Bytes, charset: str, what: str) -> str:
    """`data` as text. `what` names it in messages.

    Raises PayloadError if the charset is not supported, or if the data are not text in it.
    """
    codec = _CODECS.get(charset.strip().lower().replace("_", "-"))
    if codec is None:
        raise PayloadError(
            "%s declares the charset %s, which is not supported; send it in utf-8" % (what, ascii(charset[:40]))
        )
    try:
        return bytes(data).decode(codec)
    except UnicodeError as error:
        raise PayloadError("%s is not text in the charset %s: %s" % (what, codec, _reason(error))) from None


def _reason(error: UnicodeError) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "%s at byte %d" % (error.reason, error.start)
    return str(error)[:200]
