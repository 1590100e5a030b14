"""An error in the data of a stage: its message is for the user, without a traceback."""

from __future__ import annotations


class DataFault(Exception):
    """The data or the user's code is invalid. The message has all details."""
