"""Talking to the server: the only place that knows `huggingface_hub`, which it imports late.

Of that library the questions, addresses, tokens and sessions are used, and its errors are made
into sentences. Its own way of fetching a file is not: that throws away what it has when it is
stopped, so that nothing can be taken up again, and hears of a wish to stop every ten megabytes.
"""

import functools
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import engine
from engine.errors import DownloadError, quoted
from engine.hub.offers import CONFIG_FILE, INDEX_FILE, Offer, RemoteFile, choose, usual_choice
from engine.hub.repository import Repository

_COMMIT = re.compile(r"[0-9a-f]{40}")
_DIGEST = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_ERROR_NUMBER = re.compile(r"^\[Errno -?\d+\] ")  # before the system's words
_UNSAFE = re.compile(r'[\x00-\x1f\\:*?"<>|]')  # in a file's name, on one system or another
_MOST_JSON = 32 << 20  # bytes of a file of settings
_LOG_IN = "log in with “hf auth login”"


Body: TypeAlias = tuple[int, Iterator[bytes]]  # where the first byte lies in its file; all bytes


class BrokenConnectionError(Exception):
    """The server did not answer, or no longer; another try may go better."""


@functools.cache
def _library() -> ModuleType:
    """`huggingface_hub`, told to ask no server for anything that was not wanted."""
    import huggingface_hub  # noqa: PLC0415 - half a second, for hardly any start
    from huggingface_hub import constants  # noqa: PLC0415

    # Else it fetches a list of programs, to tell the server which of them is running it.
    constants.HF_HUB_DISABLE_TELEMETRY = True
    return huggingface_hub


class Client:
    """One server; an `endpoint` of "" is the one that HF_ENDPOINT names, or huggingface.co.

    Its methods wait for the server, for at most as long as `huggingface_hub` is told to
    (HF_HUB_DOWNLOAD_TIMEOUT, 10 seconds), and may be called on any thread.
    """

    def __init__(self, endpoint: str = "") -> None:
        self._endpoint = endpoint

    @functools.cached_property
    def endpoint(self) -> str:
        """The server's address."""
        return (self._endpoint or str(_library().constants.ENDPOINT)).rstrip("/")

    @property
    def host(self) -> str:
        """Its name, for sentences."""
        return urlsplit(self.endpoint).netloc or self.endpoint

    def look_up(self, repository: Repository) -> Offer:
        """What a repository offers now, pinned to the commit that its revision is now.

        Raises:
            DownloadError: it is not to be had, or holds no model that could be opened.
        """
        info = self._ask_for_list(repository)
        commit = str(info.sha)
        if not _COMMIT.fullmatch(commit):
            raise DownloadError(f"{self.host} names no commit for {repository.name}.")
        files = [self._file(sibling) for sibling in info.siblings or ()]
        names = {file.name for file in files}
        pinned = Repository(repository.name, commit)
        settings, index = (
            self._read_json(pinned, name) if name in names else None
            for name in (CONFIG_FILE, INDEX_FILE)
        )
        choices = choose(repository.name, files, settings, index)
        usual = usual_choice(choices, repository.file)
        return Offer(repository.name, repository.revision, commit, choices, usual)

    def _ask_for_list(self, repository: Repository) -> Any:  # noqa: ANN401 - the library's kind
        library = _library()
        api = library.HfApi(
            endpoint=self.endpoint,
            library_name="attention-scope",
            library_version=engine.__version__,
        )
        try:
            with self._in_sentences(repository):
                return api.model_info(
                    repository.name,
                    revision=repository.revision,
                    files_metadata=True,
                    timeout=library.constants.HF_HUB_DOWNLOAD_TIMEOUT,
                )
        except BrokenConnectionError as error:
            raise self.unreachable(error) from error
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise DownloadError(
                f"{self.host} answers as no such server does; is there a page to log in to this "
                "network first?"
            ) from error

    @contextmanager
    def body(
        self, pinned: Repository, name: str, start: int
    ) -> Iterator[tuple[int, Iterator[bytes]]]:
        """The bytes of a file from `start` on, as they come: where they begin, and their chunks.

        They begin at 0 where the server does not send parts.

        Raises:
            DownloadError: the file is not to be had.
            BrokenConnectionError: the server is not to be reached, or no longer.
        """
        library = _library()
        part = {"Range": f"bytes={start}-"} if start else {}
        headers = library.utils.build_hf_headers(
            library_name="attention-scope",
            library_version=engine.__version__,
            headers={"Accept-Encoding": "identity", **part},
        )
        with (
            self._in_sentences(pinned),
            library.utils.get_session().stream(
                "GET",
                self.address(pinned, name),
                headers=headers,
                timeout=library.constants.HF_HUB_DOWNLOAD_TIMEOUT,
            ) as response,
        ):
            library.utils.hf_raise_for_status(response)
            yield _first_byte(response), response.iter_bytes()

    @staticmethod
    def lock(path: Path, seconds: float) -> AbstractContextManager[object]:
        """Keep other programs from writing what `path` stands for, as that library does.

        Entering raises TimeoutError where another one holds it for so many seconds.
        """
        held: AbstractContextManager[object] = _library().utils.WeakFileLock(path, timeout=seconds)
        return held

    def address(self, pinned: Repository, name: str) -> str:
        """Where a file lies on the server."""
        return str(
            _library().hf_hub_url(
                pinned.name, name, revision=pinned.revision, endpoint=self.endpoint
            )
        )

    def _read_json(self, pinned: Repository, name: str) -> dict[str, Any]:
        data = bytearray()
        try:
            with self.body(pinned, name, 0) as (_start, chunks):
                for chunk in chunks:
                    data += chunk
                    if len(data) > _MOST_JSON:
                        raise DownloadError(
                            f"{name} of {pinned.name} has more than {_MOST_JSON} bytes."
                        )
        except BrokenConnectionError as error:
            raise self.unreachable(error) from error
        try:
            values = json.loads(data)
        except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, too deep
            raise DownloadError(f"{name} of {pinned.name} is not JSON ({error}).") from error
        if not isinstance(values, dict):
            raise DownloadError(f"{name} of {pinned.name} holds no settings by name.")
        return values

    def _file(self, sibling: Any) -> RemoteFile:  # noqa: ANN401 - the library's own kind
        """A file as the server lists it, which is not trusted with the names of ours."""
        name, size, digest = sibling.rfilename, sibling.size, sibling.blob_id
        if sibling.lfs is not None:  # what git has of it only points at it
            size, digest = sibling.lfs.size, sibling.lfs.sha256
        parts = name.split("/")
        is_safe = not any(_UNSAFE.search(part) or part in {"", ".", ".."} for part in parts)
        if not is_safe or type(size) is not int or size < 0 or not _DIGEST.fullmatch(str(digest)):
            raise DownloadError(
                f"{self.host} lists a file {quoted(name)} with {quoted(size)} bytes and the "
                f"checksum {quoted(digest)}, which is not fetched."
            )
        return RemoteFile(name, size, str(digest))

    @contextmanager
    def _in_sentences(self, repository: Repository) -> Iterator[None]:
        """What the library raises, as what to tell the user."""
        import httpx2  # noqa: PLC0415 - what `huggingface_hub` talks with

        errors = _library().errors
        name = repository.name
        try:
            yield
        except (errors.HFValidationError, httpx2.InvalidURL) as error:
            raise DownloadError(f"{name!r} is no name of a repository on {self.host}.") from error
        except errors.OfflineModeIsEnabled as error:
            raise DownloadError(
                "HF_HUB_OFFLINE tells this program to stay off the network; unset it to download."
            ) from error
        except errors.HfHubHTTPError as error:
            raise DownloadError(self._refusal(error, repository)) from error
        except httpx2.UnsupportedProtocol as error:
            raise DownloadError(
                f"{self.endpoint!r} is no address of a server; HF_ENDPOINT should be one, such as "
                "https://huggingface.co."
            ) from error
        except httpx2.HTTPError as error:
            why = _ERROR_NUMBER.sub("", str(error)) or type(error).__name__
            raise BrokenConnectionError(why) from error

    def _refusal(self, error: Any, repository: Repository) -> str:  # noqa: ANN401 - as above
        errors, name = _library().errors, repository.name
        status: int = error.response.status_code
        if isinstance(error, errors.GatedRepoError):
            return (
                f"{name} is gated: accept its conditions on {self.endpoint}/{name}, and {_LOG_IN}."
            )
        if isinstance(error, errors.RevisionNotFoundError):
            return f"{name} has no revision {repository.revision!r}."
        if isinstance(error, errors.EntryNotFoundError):
            return f"{name} no longer has a file that it lists."
        # Of private repositories, the server tells a stranger that there is none.
        hidden = (
            f"{self.host} has no repository {name}, or it is private; see to the spelling, or "
            f"{_LOG_IN} if it is yours."
        )
        sentences = {
            401: hidden,
            403: f"{self.host} does not let you have {name} (403); {_LOG_IN} as somebody it does.",
            404: hidden,
            429: f"{self.host} has been asked too often (429); try again in a few minutes.",
        }
        return sentences.get(status, f"{self.host} could not answer ({status}); try again later.")

    def unreachable(self, error: BrokenConnectionError) -> DownloadError:
        """What to tell when there was no connection at all."""
        return DownloadError(
            f"{self.host} cannot be reached ({error}); is this computer online? Models that are "
            "on it already open without a network."
        )


def _first_byte(response: Any) -> int:  # noqa: ANN401 - as above
    """Where what is sent begins, by what the server says."""
    headers: Mapping[str, str] = response.headers
    found = re.match(r"bytes (\d+)-", headers.get("Content-Range", ""))
    return int(found[1]) if found and response.status_code == 206 else 0
