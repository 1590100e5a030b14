"""The project of the pod's version: fetched once a volume, proved by its content id, and repaired if files changed."""

from __future__ import annotations

import os
import shutil
import ssl
import tempfile
import urllib.error
import urllib.request
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, NoReturn

from .contents import changed_files, content_id, files_of, save_files, saved_files
from .locks import building
from .preparation_error import FetchError
from .unpack import ArchiveError, unpack

if TYPE_CHECKING:
    from collections.abc import Callable

    from .contents import Files
    from .settings import Settings

SILENT_S = 30.0


def fetch_project(settings: Settings, on_wait: Callable[[str], None]) -> str:
    """The directory of the project, with the files that were deployed. Raises FetchError. `on_wait` gets a reason."""
    root = os.path.join(settings.cache, "projects")
    directory = os.path.join(root, settings.project_id)
    try:
        os.makedirs(root, exist_ok=True)
        with building(directory, lambda: on_wait("another pod of this node fetches the same project")):
            files = saved_files(directory + ".files", settings.project_id)
            changed = None if files is None else changed_files(directory, files)
            if changed != []:
                _fetch(settings, directory, changed)
    except OSError as error:
        raise FetchError("the project cannot be written below %s: %s" % (root, error)) from None
    return directory


def _fetch(settings: Settings, directory: str, changed: list[str] | None) -> None:
    """Whole, or only the files that are not as they were: other pods may run in the directory."""
    incoming = tempfile.mkdtemp(prefix=".incoming-", dir=os.path.dirname(directory))
    try:
        files = _download(settings, incoming)
        if changed is None:
            shutil.rmtree(directory, ignore_errors=True)
            os.chmod(incoming, 0o755)
            os.rename(incoming, directory)
        else:
            for path in changed:
                target = os.path.join(directory, path)
                os.makedirs(os.path.dirname(target), exist_ok=True)
                os.replace(os.path.join(incoming, path), target)
        save_files(directory + ".files", files)
    finally:
        shutil.rmtree(incoming, ignore_errors=True)


def _download(settings: Settings, directory: str) -> Files:
    request = urllib.request.Request(
        settings.project_url, headers={"Authorization": "Bearer %s" % settings.token(), "Accept-Encoding": "identity"}
    )
    try:
        with _opener(settings).open(request, timeout=SILENT_S) as response:
            unpack(response.read, directory)
    except urllib.error.HTTPError as error:
        raise FetchError(
            "the server answers %d to %s%s" % (error.code, settings.project_url, _cure(error.code)), error.code == 404
        ) from None
    except (urllib.error.URLError, HTTPException, ssl.SSLError, TimeoutError, ConnectionError) as error:
        raise FetchError("%s cannot be read: %s" % (settings.project_url, error)) from None
    except ArchiveError as error:
        raise FetchError(str(error)) from None
    files = files_of(directory)
    got = content_id(files)
    if got != settings.project_id:
        raise FetchError("%s has the content of %s" % (settings.project_url, got))
    return files


def _cure(status: int) -> str:
    if status in (401, 403):
        return "; the token in the pod's Secret does not open this project"
    return ": the files of the version are not in the state of the server: deploy it again" if status == 404 else ""


def _opener(settings: Settings) -> Any:
    """Sends the token to that address only: through no proxy, and to no other address."""
    authority = settings.secret("ca.crt")
    context = ssl.create_default_context(cafile=authority if os.path.exists(authority) else None)
    return urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context), _NoRedirects()
    )


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> NoReturn:
        raise urllib.error.HTTPError(req.full_url, code, "a redirection, which is not followed", headers, fp)
