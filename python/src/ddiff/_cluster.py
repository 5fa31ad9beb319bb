"""Campaigns on a cluster, over its HTTP API."""

from __future__ import annotations

import io
import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_ENDED = ("finished", "rejected", "cancelled")
_MAX_ANSWER = 256 << 20  # in bytes


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Makes a redirect an error: a token belongs to one server."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _stored(url: str) -> str:
    """Returns the token that `ddiff login` keeps for a server."""
    given = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    path = (given if given.is_absolute() else Path.home() / ".config") / "ddiff" / "tokens.json"
    try:
        file = path.open()
    except FileNotFoundError:
        return ""
    with file:
        if os.fstat(file.fileno()).st_mode & 0o077:
            raise PermissionError(f"read the tokens of ddiff login: others may read {path}; run: chmod 600 {path}")
        return str((json.load(file) or {}).get(url.rstrip("/"), ""))


class Cluster:
    """A coordinator.

    url: such as "https://host:8620". token: of `ddiff token`; default: the variable DDIFF_TOKEN, or that of `ddiff login`. timeout: of a request, in seconds.
    """

    def __init__(self, url: str, token: str | None = None, timeout: float = 60) -> None:
        at = urllib.parse.urlsplit(url)
        if at.scheme not in ("http", "https") or not at.hostname or at.username is not None or at.query or at.fragment:
            raise ValueError("the address of the server is not of the form https://host:8620, without user, password, query and fragment")
        named = at.hostname.rstrip(".") == "localhost"
        if named and at.scheme == "http":  # the name also means ::1, where another user may listen
            at = at._replace(netloc="127.0.0.1" + (f":{at.port}" if at.port else ""))
        local = named or at.hostname == "::1" or at.hostname.startswith("127.")  # a proxy would get the token
        self.url, self._timeout = at.geturl().rstrip("/") + "/api/v1", timeout
        self._opener = urllib.request.build_opener(_NoRedirect, *([urllib.request.ProxyHandler({})] if local else []))
        self._token = (os.environ.get("DDIFF_TOKEN") or _stored(url)) if token is None else token

    def submit(self, campaign: str | os.PathLike[str] | Mapping[str, Any]) -> Campaign:
        """Submits a campaign: the path of a campaign file, or its fields (docs/campaigns.md). Its paths are those of the coordinators' machines.

        Idempotent: an existing campaign is returned. Warns of runs that are all equal. Raises ConnectionError if no coordinator answers, and ValueError with its reason if it refuses."""
        body = json.dumps(dict(campaign)).encode() if isinstance(campaign, Mapping) else Path(campaign).read_bytes()
        made = json.loads(self._request("POST", "/campaigns", body, "application/yaml"))
        if "warning" in made:
            warnings.warn(made["warning"], stacklevel=2)
        return Campaign(self, made["id"])

    def campaign(self, id: str) -> Campaign:
        """Returns a campaign by its id."""
        return Campaign(self, id)

    def _request(self, method: str, path: str, body: bytes | None = None, kind: str = "application/json") -> bytes:
        headers = {"Content-Type": kind} | ({"Authorization": f"Bearer {self._token}"} if self._token else {})
        try:
            with self._opener.open(urllib.request.Request(self.url + path, body, headers, method=method), timeout=self._timeout) as answer:
                data = answer.read(_MAX_ANSWER + 1)
                if len(data) > _MAX_ANSWER:
                    raise ConnectionError(f"{method} {path}: the answer has more than {_MAX_ANSWER >> 20} MiB")
                return data
        except urllib.error.HTTPError as err:
            text = err.read(1 << 20).decode(errors="replace")
            try:
                problem = json.loads(text)
                text = problem.get("detail") or problem.get("title") or text
            except ValueError:
                pass
            raise (ConnectionError if err.code >= 500 else ValueError)(f"{method} {path}: {err.code}: {text}") from None
        except urllib.error.URLError as err:
            raise ConnectionError(f"{self.url}: {err.reason}") from None


@dataclass(frozen=True)
class Campaign:
    """A campaign on a cluster."""

    cluster: Cluster
    id: str

    def status(self) -> dict[str, Any]:
        """Returns the status: "phase", such as "running" or "finished", "counts" of items by outcome, and more."""
        answer = json.loads(self.cluster._request("GET", f"/campaigns/{self.id}"))
        return {"phase": answer["campaign"]["phase"], **answer["status"]}

    def wait(self, every: float = 2, timeout: float | None = None) -> Campaign:
        """Returns when the campaign has ended; asks each `every` seconds. After `timeout` seconds it raises TimeoutError.

        TimeoutError and KeyboardInterrupt end the wait, not the campaign."""
        end = None if timeout is None else time.monotonic() + timeout
        while (phase := self.status()["phase"]) not in _ENDED:
            if end is not None and time.monotonic() >= end:
                raise TimeoutError(f"campaign {self.id} is {phase} after {timeout:g} s; call wait again, or cancel it")
            time.sleep(every)
        return self

    def cancel(self) -> None:
        """Cancels the campaign."""
        self.cluster._request("POST", f"/campaigns/{self.id}/cancel", b"{}")

    def table(self) -> Any:
        """Returns a pandas DataFrame with one row per item, of a campaign that has ended. Needs pandas."""
        import pandas

        return pandas.read_csv(io.BytesIO(self.cluster._request("GET", f"/campaigns/{self.id}/report/results.csv")), converters={"image": str})
