"""A repository as a user writes it: its name, or the address of one of its pages."""

import re
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from engine.errors import DownloadError

_HOSTS = ("huggingface.co", "www.huggingface.co", "hf.co")
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,95}")
_NEVER = re.compile(r"--|\.\.|[.-]$")  # in a part of a name, by Hugging Face's own rules
_REVISION = re.compile(r"[^\x00-\x20\x7f~^:?*\[\\]{1,200}")  # as git allows them, nearly
_PAGES = ("tree", "blob", "resolve", "raw", "commit")  # what comes before a revision
_OTHER_KINDS = ("datasets", "spaces", "collections", "papers", "docs", "blog", "kernels")
_LONGEST = 80  # characters of what the user wrote, in a sentence

USUAL_REVISION = "main"


@dataclass(frozen=True)
class Repository:
    """Where to look: `name` is owner/name, or a name alone for the oldest models."""

    name: str
    revision: str = USUAL_REVISION
    file: str = ""  # that an address pointed at


def read_repository(text: str, revision: str = "", endpoint: str = "") -> Repository:
    """What a user means; `revision`, where there is one, wins over that of an address.

    `endpoint` is the server whose addresses are taken beside those of huggingface.co.

    Raises:
        DownloadError: it is no name of a repository with a model.
    """
    text, revision = text.strip(), revision.strip()
    parts = _parts_of_address(text, endpoint)
    repository = Repository(text) if parts is None else _at_address(parts, text)
    if not _is_name(repository.name):
        raise _no_name(text)
    revision = revision or repository.revision
    if not _REVISION.fullmatch(revision) or ".." in revision or revision.startswith(("/", "-")):
        raise DownloadError(
            f"{_short(revision)!r} is no revision; write the name of a branch or a tag, such as "
            f"{USUAL_REVISION}, or a commit."
        )
    return Repository(repository.name, revision, repository.file)


def _parts_of_address(text: str, endpoint: str) -> list[str] | None:
    """The parts of an address' path; None if the text is no address."""
    hosts = (*_HOSTS, urlsplit(endpoint).netloc) if endpoint else _HOSTS
    if text.partition("/")[0].lower() in hosts:
        text = f"https://{text}"
    if "://" not in text:
        return None
    try:
        address = urlsplit(text)
    except ValueError:  # an address of IPv6 that is none
        raise _no_name(text) from None
    if address.scheme not in {"http", "https"} or address.netloc.lower() not in hosts:
        raise DownloadError(
            f"{_short(text)} is no address of {hosts[-1] if endpoint else hosts[0]}, and models "
            "are fetched from nowhere else."
        )
    return [unquote(part) for part in address.path.split("/") if part]


def _at_address(parts: list[str], text: str) -> Repository:
    if parts[:1] == ["models"]:
        parts = parts[1:]
    if parts and parts[0] in _OTHER_KINDS:
        raise DownloadError(f"{_short(text)} leads to {parts[0]}, not to a model.")
    # A name alone, as the oldest models have it, may be followed by a page's kind as well.
    n = 1 if len(parts) < 2 or parts[1] in _PAGES else 2
    name, page, rest = "/".join(parts[:n]), parts[n : n + 1], parts[n + 1 :]
    if not page or page[0] not in _PAGES or not rest:
        return Repository(name)
    if rest[0] == "refs" and len(rest) > 2:  # refs/pr/3
        rest = ["/".join(rest[:3]), *rest[3:]]
    file = "/".join(rest[1:]) if page[0] != "tree" else ""
    return Repository(name, rest[0], file)


def _is_name(name: str) -> bool:
    parts = name.split("/")
    return len(parts) <= 2 and all(
        _PART.fullmatch(part) and not _NEVER.search(part) for part in parts
    )


def _no_name(text: str) -> DownloadError:
    if not text:
        return DownloadError("Write the name of a repository, such as owner/name.")
    return DownloadError(
        f"{_short(text)!r} is no name of a repository; write owner/name, such as "
        "HuggingFaceTB/SmolLM2-135M, or paste the address of its page."
    )


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
