"""What a stage says of the data that it was given: its words are for the user, a traceback is not."""

from __future__ import annotations


class DataFault(Exception):
    """The data, or the user's code, is not what it must be. Its message says all."""
