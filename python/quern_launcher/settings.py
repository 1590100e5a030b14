"""What a pod tells its launcher: variables, and the files of its Secret (docs/pods.md has the table)."""

from __future__ import annotations

import os
import re
import tempfile
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping

PROJECT_ID = re.compile(r"^[0-9a-f]{24}$")
LOOPBACK = re.compile(r"^(localhost|127\.[\d.]+|\[?::1\]?)$")
GRACE_S = 30.0


class SettingsError(Exception):
    """A setting is missing or wrong; the text names it, and says what to do."""


class Address(NamedTuple):
    """Where to listen."""

    host: str
    port: int

    def __str__(self) -> str:
        return "%s:%d" % (self.host, self.port)


class Settings(NamedTuple):
    """All that a launcher needs to know."""

    project_url: str
    project_id: str
    listen: Address
    health: Address
    # Where projects and Python environments are kept; several pods may share it.
    cache: str
    # This pod's own: the note, and what is known of former processes.
    run: str
    # The files `token`, `tls.crt`, `tls.key` and perhaps `ca.crt`.
    secrets: str
    api_url: str | None
    grace_s: float
    # The interpreter of the worker.
    python: str
    # `predictor.python_path`, below the project.
    python_path: str | None
    # Whether the pod is done once its worker was told to leave: that of a job.
    ends_with_worker: bool

    def secret(self, name: str) -> str:
        """The path of a file of the Secret."""
        return os.path.join(self.secrets, name)

    def token(self) -> str:
        """Read each time that it is needed, because it may be renewed. Raises SettingsError if it is not there."""
        try:
            with open(self.secret("token")) as file:
                return file.read().strip()
        except OSError as error:
            raise SettingsError("the token cannot be read; mount the pod's Secret: %s" % error) from None


def read_settings(environment: Mapping[str, str], python: str) -> Settings:
    """Raises SettingsError. `python` is the interpreter if QUERN_PYTHON names none."""
    url = environment.get("QUERN_PROJECT_URL", "")
    project_id = urlsplit(url).path.rpartition("/")[2]
    if not url.startswith(("http://", "https://")) or not PROJECT_ID.match(project_id):
        raise SettingsError(
            "QUERN_PROJECT_URL is %r; set it to the http or https address of a project, which ends with its id" % url
        )
    run = environment.get("QUERN_RUN") or os.path.join(tempfile.gettempdir(), "quern-pod")
    settings = Settings(
        project_url=url,
        project_id=project_id,
        listen=_address(environment, "QUERN_LISTEN", "0.0.0.0:8421"),
        health=_address(environment, "QUERN_HEALTH", "0.0.0.0:8422"),
        cache=environment.get("QUERN_CACHE") or os.path.join(run, "cache"),
        run=run,
        secrets=environment.get("QUERN_SECRETS") or "/var/run/quern",
        api_url=environment.get("QUERN_API_URL") or None,
        grace_s=_seconds(environment, "QUERN_GRACE", GRACE_S),
        python=environment.get("QUERN_PYTHON") or python,
        python_path=environment.get("QUERN_PYTHON_PATH") or None,
        ends_with_worker=environment.get("QUERN_ENDS_WITH_WORKER") == "true",
    )
    if not os.path.exists(settings.secret("tls.crt")) and not LOOPBACK.match(settings.listen.host):
        raise SettingsError(
            "%s is missing, and QUERN_LISTEN=%s is no loopback address; mount the pod's Secret"
            % (settings.secret("tls.crt"), settings.listen)
        )
    return settings


def _address(environment: Mapping[str, str], name: str, usual: str) -> Address:
    text = environment.get(name) or usual
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise SettingsError("%s is %r; set it to HOST:PORT, such as %s" % (name, text, usual))
    return Address(host, int(port))


def _seconds(environment: Mapping[str, str], name: str, usual: float) -> float:
    text = environment.get(name) or str(usual)
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1
    if not 0 <= seconds < 86400:
        raise SettingsError("%s is %r; set it to seconds, such as %d" % (name, text, usual))
    return seconds
