"""A server in this process that answers as Hugging Face's does, with files of the tests' own.

As much of it as fetching needs: the list of a repository's files at a revision, and the files,
whole or from a byte on, large ones by way of a second address.
"""

import hashlib
import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

_LIST = re.compile(r"/api/models/(.+?)/revision/([^/]+)")
_FILE = re.compile(r"/(.+?)/resolve/([^/]+)/(.+)")
_LARGE = (".safetensors", ".gguf", ".bin")  # what git keeps elsewhere
PIECE = 1000  # bytes that are sent at once, so that a transfer has a middle

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def digest_of(name: str, content: bytes) -> str:
    """The checksum that the server lists: SHA-256 of a large file, git's own of a small one."""
    if name.endswith(_LARGE):
        return hashlib.sha256(content).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()  # noqa: S324 - git's


@dataclass
class Remote:
    """One repository as it is now."""

    files: dict[str, bytes]
    commits: dict[str, str] = field(default_factory=lambda: {"main": COMMIT})  # by revision


@dataclass
class Request:
    """What was asked for: `start` is the first byte, None where no part was named."""

    method: str
    path: str
    start: int | None
    headers: Mapping[str, str]


@dataclass
class HubServer:
    """What the server holds, how it misbehaves, and what it was asked."""

    address: str = ""
    large_address: str = ""  # of another host, as far as names go
    repositories: dict[str, Remote] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    refusal: tuple[int, str] | None = None  # status and error code of every answer
    sends_parts: bool = True
    is_damaged: bool = False  # every large file has its last byte changed
    changes: dict[str, Any] = field(default_factory=dict)  # of each file in the list
    answer: bytes | None = None  # to the question for a list, in place of the right one
    breaks_after: list[int] = field(default_factory=list)  # bytes; one of these for each transfer
    gate: threading.Semaphore | None = None  # one is taken for each piece that is sent

    def put(self, name: str, files: Mapping[str, bytes]) -> Remote:
        """Add a repository with these files."""
        self.repositories[name] = Remote(dict(files))
        return self.repositories[name]

    def transfers(self, file: str) -> list[int | None]:
        """The first byte of each transfer of a file; None where all was asked for."""
        content = next(r.files[file] for r in self.repositories.values() if file in r.files)
        end = f"/large/{digest_of(file, content)}" if file.endswith(_LARGE) else f"/{file}"
        return [each.start for each in self.requests if each.path.endswith(end)]


class _Handler(BaseHTTPRequestHandler):
    hub: HubServer

    def do_GET(self) -> None:
        self._answer(has_body=True)

    def do_HEAD(self) -> None:
        self._answer(has_body=False)

    def log_message(self, *_arguments: Any) -> None:
        """Nothing on the terminal."""

    def _answer(self, *, has_body: bool) -> None:
        path = urlsplit(self.path).path
        asked = re.match(r"bytes=(\d+)-", self.headers.get("Range", ""))
        start = int(asked[1]) if asked else None
        self.hub.requests.append(Request(self.command, path, start, dict(self.headers)))
        if self.hub.refusal is not None:
            self._refuse(*self.hub.refusal)
        elif found := _LIST.fullmatch(path):
            self._list(found[1], unquote(found[2]))
        elif path.startswith("/large/"):
            self._send(self._large(path.removeprefix("/large/")), start, has_body=has_body)
        elif found := _FILE.fullmatch(path):
            self._file(found[1], unquote(found[2]), unquote(found[3]), start, has_body=has_body)
        else:
            self._refuse(404, "RepoNotFound")

    def _list(self, name: str, revision: str) -> None:
        if self.hub.answer is not None:
            self._send(self.hub.answer, None)
            return
        remote = self.hub.repositories.get(name)
        commit = self._commit(remote, revision)
        if remote is None or commit is None:
            self._refuse(404, "RevisionNotFound" if remote else "RepoNotFound")
            return
        siblings = []
        for file, content in remote.files.items():
            entry: dict[str, Any] = {"rfilename": file, "size": len(content), "blobId": "c" * 40}
            if file.endswith(_LARGE):
                entry["lfs"] = {
                    "sha256": digest_of(file, content),
                    "size": len(content),
                    "pointerSize": 134,
                }
            else:
                entry["blobId"] = digest_of(file, content)
            siblings.append(entry | self.hub.changes)
        answer = {"id": name, "modelId": name, "sha": commit, "siblings": siblings, "tags": []}
        self._send(json.dumps(answer).encode(), None)

    @staticmethod
    def _commit(remote: Remote | None, revision: str) -> str | None:
        if remote is None:
            return None
        return revision if revision in remote.commits.values() else remote.commits.get(revision)

    def _file(
        self, name: str, revision: str, file: str, start: int | None, *, has_body: bool
    ) -> None:
        remote = self.hub.repositories.get(name)
        commit = self._commit(remote, revision)
        if remote is None or commit is None or file not in remote.files:
            self._refuse(404, "EntryNotFound" if remote else "RepoNotFound")
            return
        content = remote.files[file]
        digest = digest_of(file, content)
        headers = {"X-Repo-Commit": commit, "ETag": f'"{digest}"'}
        if file.endswith(_LARGE):
            headers |= {"X-Linked-Etag": f'"{digest}"', "X-Linked-Size": str(len(content))}
            headers |= {
                "Location": f"{self.hub.large_address}/large/{digest}",
                "Content-Length": "0",
            }
            self._head(302, headers)
        else:
            self._send(content, start, headers, has_body=has_body)

    def _large(self, digest: str) -> bytes:
        for remote in self.hub.repositories.values():
            for file, content in remote.files.items():
                if digest_of(file, content) == digest:
                    changed = content[:-1] + bytes([content[-1] ^ 1])
                    return changed if self.hub.is_damaged else content
        raise AssertionError(digest)

    def _send(
        self,
        content: bytes,
        start: int | None,
        headers: Mapping[str, str] | None = None,
        *,
        has_body: bool = True,
    ) -> None:
        told = {"Accept-Ranges": "bytes", **(headers or {})}
        status, first = 200, 0
        if start is not None and self.hub.sends_parts:
            status, first = 206, start
            told["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        body = content[first:]
        self._head(status, {**told, "Content-Length": str(len(body))})
        if not has_body:
            return
        is_transfer = headers is not None or self.path.startswith("/large/")
        left = self.hub.breaks_after.pop(0) if is_transfer and self.hub.breaks_after else len(body)
        try:
            self._send_pieces(body[:left])
        except (BrokenPipeError, ConnectionResetError):
            return  # whoever asked has gone

    def _send_pieces(self, body: bytes) -> None:
        for begin in range(0, len(body), PIECE):
            if self.hub.gate is not None and not self.path.startswith("/api/"):
                self.hub.gate.acquire(timeout=20)
            self.wfile.write(body[begin : begin + PIECE])
            self.wfile.flush()

    def _refuse(self, status: int, code: str) -> None:
        headers = {"X-Error-Code": code} if code else {}
        self._head(status, {**headers, "Content-Length": "0"})

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()


@contextmanager
def serving() -> Iterator[HubServer]:
    """A server on a port of this computer, for as long as the block lasts."""
    from huggingface_hub import close_session  # noqa: PLC0415 - half a second

    hub = HubServer()
    handler = type("Handler", (_Handler,), {"hub": hub})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    hub.address = f"http://127.0.0.1:{server.server_port}"
    hub.large_address = f"http://localhost:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), name="hub", daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        if hub.gate is not None:
            hub.gate.release(10_000)
        close_session()
        server.shutdown()
        server.server_close()
        thread.join(10)
