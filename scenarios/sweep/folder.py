"""The folder of a sweep: on this machine's disk, or under a URI of an object store or a distributed file system.

File names are relative to it, with slashes. Finished files are never renamed, because no rename in an object store is
safe. No file is written or removed through a link below the folder that the user named.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import unquote, urlsplit

from scenarios import memory, own_files
from sim.errors import InputError, UnavailableError, did_you_mean

if TYPE_CHECKING:
    import pyarrow.fs as pafs

_URI: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://|(file):/")
_S3: Final = ("s3", "s3a")
UNTESTED: Final = ("hdfs", "gs", "abfss")
"""Schemes that are passed to pyarrow and Spark, untested."""
FILE: Final = "file"
FOLDER: Final = "folder"
OTHER: Final = "link"
"""Kinds of entries; pipes and devices count as links."""
_PENDING: Final = re.compile(r"_temporary(/(_temporary|\d+|(task|attempt)_\w+))*")
"""Temporary folders of Spark's tasks."""
_S3A: Final = "spark.hadoop.fs.s3a."

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FileInfo:
    """A file: its size in bytes, its modification time in seconds by the storage's clock, and whether it is regular (no
    link, pipe or device).
    """

    size: int
    written: float
    regular: bool = True


class Folder(ABC):
    """A folder for files. Every method raises OSError if the storage fails.

    Attributes:
        shown: its name in messages.
        spark_uri: its URI for Spark.
        local: its path; None if it is not on this machine.
    """

    shown: str
    spark_uri: str
    local: Path | None

    @abstractmethod
    def read(self, name: str) -> bytes:
        """A file's content; FileNotFoundError if there is none."""

    @abstractmethod
    def write(self, name: str, content: bytes, start: re.Pattern[bytes]) -> None:
        """Write a file and its folders; readers see the old or the new content, never a part.

        Raises:
            InputError: a file is there that does not begin with `start`.
        """

    @abstractmethod
    def entries(self) -> dict[str, str]:
        """Its entries: name -> `FILE`, `FOLDER` or `OTHER`; empty if the folder does not exist."""

    @abstractmethod
    def files(self, under: str = "") -> dict[str, FileInfo]:
        """All files below a subfolder, ordered by name; none if it does not exist."""

    @abstractmethod
    def remove(self, name: str, start: re.Pattern[bytes]) -> None:
        """Remove a file if it exists and begins with `start`."""

    @abstractmethod
    def prune(self, name: str) -> None:
        """Remove a folder if it contains at most empty folders of Spark's tasks."""

    @abstractmethod
    def vanish(self) -> None:
        """Remove the folder if this object created it and it is empty."""


class LocalFolder(Folder):
    """See `Folder`."""

    def __init__(self, path: Path) -> None:
        self.local = path
        self._path = path
        # Folders that `write` may have to create, the innermost first.
        self._absent = [place for place in (path, *path.parents) if not place.exists()]
        self.shown = str(path)
        self.spark_uri = f"file://{path.absolute()}"

    def read(self, name: str) -> bytes:
        # Opening a FIFO would wait for a writer that may never come.
        handle = os.open(self._path / name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise FileNotFoundError(errno.ENOENT, "it is no regular file", str(self._path / name))
            return file.read()

    def write(self, name: str, content: bytes, start: re.Pattern[bytes]) -> None:
        path = self._reached(name)
        with _named(path):
            own_files.make_folder(path.parent)
            own_files.replace(path, content, start)

    def create(self, name: str) -> None:
        """Create a folder."""
        path = self._reached(name)
        with _named(path):
            own_files.make_folder(path)

    def has_folder(self, name: str) -> bool:
        """Whether a folder exists."""
        return self._reached(name).is_dir()

    def _reached(self, name: str) -> Path:
        """The path of a file or folder to change."""
        path = self._path
        for part in name.split("/")[:-1]:
            path /= part
            if path.is_symlink():
                raise OSError(errno.ELOOP, "it is a link, and links are not followed", str(path))
        return self._path / name

    def entries(self) -> dict[str, str]:
        try:
            with os.scandir(self._path) as found:
                return {entry.name: _kind(entry) for entry in found}
        except FileNotFoundError:
            return {}

    def files(self, under: str = "") -> dict[str, FileInfo]:
        found: dict[str, FileInfo] = {}
        for place, _, names in os.walk(self._path / under):
            for name in names:
                path = Path(place, name)
                # Another driver may remove its files.
                with contextlib.suppress(FileNotFoundError):
                    state = path.lstat()
                    entry = FileInfo(state.st_size, state.st_mtime, stat.S_ISREG(state.st_mode))
                    found[path.relative_to(self._path).as_posix()] = entry
        return dict(sorted(found.items()))

    def remove(self, name: str, start: re.Pattern[bytes]) -> None:
        own_files.remove(self._reached(name), start)

    def prune(self, name: str) -> None:
        top = self._reached(name)
        if not top.is_symlink():
            for place, _, _ in os.walk(top, topdown=False):
                if _is_prunable(Path(place).relative_to(top).parts):
                    own_files.remove_empty(Path(place))

    def vanish(self) -> None:
        for place in self._absent:
            own_files.remove_empty(place)


def _kind(entry: os.DirEntry[str]) -> str:
    if entry.is_file(follow_symlinks=False):
        return FILE
    return FOLDER if entry.is_dir(follow_symlinks=False) else OTHER


def _is_prunable(parts: Sequence[str]) -> bool:
    """Whether a folder may be removed once it is empty, by its path below the pruned one."""
    return not parts or _PENDING.fullmatch("/".join(parts)) is not None


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
    """Add the path to errors of open files."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


@contextlib.contextmanager
def _failing() -> Iterator[None]:
    """Turn pyarrow's errors into OSError."""
    import pyarrow as pa

    try:
        yield
    except pa.ArrowException as error:
        raise OSError(next(iter(str(error).splitlines()), "it fails")) from None


class RemoteFolder(Folder):
    """See `Folder`. The path is that of the folder in the file system."""

    def __init__(self, system: pafs.FileSystem, path: str, shown: str, spark_uri: str) -> None:
        self.local = None
        self.shown = shown
        self.spark_uri = spark_uri
        self._system = system
        self._path = path.rstrip("/")
        self._made: bool | None = None

    def read(self, name: str) -> bytes:
        with _failing(), self._system.open_input_file(f"{self._path}/{name}") as file:
            content: bytes = file.read()
            return content

    def write(self, name: str, content: bytes, start: re.Pattern[bytes]) -> None:
        import pyarrow.fs as pafs

        path = f"{self._path}/{name}"
        if not self._is_own(path, start):
            raise InputError(f"{self.shown}/{name} was not written by highwater: move it elsewhere")
        with _failing():
            if self._made is None:
                self._made = self._system.get_file_info(self._path).type == pafs.FileType.NotFound
            if not isinstance(self._system, pafs.S3FileSystem):
                self._system.create_dir(path.rpartition("/")[0], recursive=True)
            with self._system.open_output_stream(path) as file:
                file.write(content)

    def entries(self) -> dict[str, str]:
        return {info.base_name: FILE if info.is_file else FOLDER for info in self._listed("", recursive=False)}

    def files(self, under: str = "") -> dict[str, FileInfo]:
        found = {
            info.path.removeprefix(f"{self._path}/"): FileInfo(info.size, (info.mtime_ns or 0) / 1e9)
            for info in self._listed(under)
            if info.is_file
        }
        return dict(sorted(found.items()))

    def _listed(self, under: str, *, recursive: bool = True) -> list[pafs.FileInfo]:
        import pyarrow.fs as pafs

        place = f"{self._path}/{under}".rstrip("/")
        with _failing():
            found: list[pafs.FileInfo] = self._system.get_file_info(
                pafs.FileSelector(place, allow_not_found=True, recursive=recursive)
            )
        return found

    def remove(self, name: str, start: re.Pattern[bytes]) -> None:
        path = f"{self._path}/{name}"
        if self._is_own(path, start):
            with contextlib.suppress(FileNotFoundError), _failing():
                self._system.delete_file(path)

    def _is_own(self, path: str, start: re.Pattern[bytes]) -> bool:
        """Whether nothing is at a path, or a file that this program wrote."""
        with contextlib.suppress(FileNotFoundError), _failing(), self._system.open_input_file(path) as file:
            return own_files.is_own(file.read(own_files.START_BYTES), start)
        return True

    def prune(self, name: str) -> None:
        # Empty objects that represent folders, and real folders elsewhere.
        place = f"{self._path}/{name}".rstrip("/")
        below = [info.path.removeprefix(f"{place}/").split("/") for info in self._listed(name) if not info.is_file]
        if not self.files(name) and all(map(_is_prunable, below)):
            with contextlib.suppress(OSError), _failing():
                self._system.delete_dir(place)

    def vanish(self) -> None:
        if self._made:
            self.prune("")


def open_folder(place: Folder | Path | str, conf: Mapping[str, str] | None = None) -> Folder:
    """The folder that a user names: a path (which may contain colons), or a URI of `file`, `s3`, `s3a` or `UNTESTED`.

    S3 is configured by ``spark.hadoop.fs.s3a.*`` of the Spark settings, otherwise by the environment's AWS_*.

    Raises:
        InputError: the URI has an unknown scheme, or contains credentials.
        UnavailableError: its library is missing.
    """
    if isinstance(place, Folder):
        return place
    if isinstance(place, Path):
        return LocalFolder(place)
    found = _URI.match(place)
    if found is None:
        return LocalFolder(Path(place))
    scheme = (found[1] or found[2]).lower()
    if scheme == "file":
        return _file(place)
    if scheme not in (*_S3, *UNTESTED):
        raise InputError(f"a URI of {scheme}: is not known{did_you_mean(scheme, ['file', *_S3, *UNTESTED])}")
    _, _, rest = place.partition("://")
    host, _, path = rest.partition("/")
    if "@" in host and scheme != "abfss":  # In abfss, the container precedes the @.
        raise InputError(f"a URI of {scheme}: has credentials in it; give them by the environment or --conf")
    if scheme in _S3:
        if not host:
            raise InputError(f"{place!r} names no bucket")
        return RemoteFolder(_s3(conf or {}), f"{host}/{path}".rstrip("/"), place, f"s3a://{rest}".rstrip("/"))
    import pyarrow.fs as pafs

    return _attempt(scheme, lambda: RemoteFolder(*pafs.FileSystem.from_uri(place), place, place.rstrip("/")))


def _file(uri: str) -> Folder:
    parts = urlsplit(uri)
    if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
        raise InputError(f"{uri!r} is not of the form file:///PATH")
    return LocalFolder(Path(unquote(parts.path)))


def _s3(conf: Mapping[str, str]) -> pafs.FileSystem:
    """S3 by Spark's settings, otherwise by the environment."""
    import pyarrow.fs as pafs

    def setting(name: str) -> str | None:
        return conf.get(_S3A + name)

    given = {
        "access_key": setting("access.key"),
        "secret_key": setting("secret.key"),
        "session_token": setting("session.token"),
        "region": setting("endpoint.region"),
        # pyarrow reads the other AWS variables itself.
        "endpoint_override": setting("endpoint") or _environment("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
        "scheme": {"false": "http", "true": "https"}.get(setting("connection.ssl.enabled") or ""),
    }
    options: dict[str, Any] = {name: value for name, value in given.items() if value}
    if "Anonymous" in (setting("aws.credentials.provider") or ""):
        options["anonymous"] = True
    return _attempt("s3", lambda: pafs.S3FileSystem(**options))


def _environment(*names: str) -> str | None:
    return next((os.environ[name] for name in names if os.environ.get(name)), None)


def _attempt(scheme: str, make: Callable[[], T]) -> T:
    try:
        return make()
    except (ImportError, OSError, ValueError, AttributeError) as error:
        if memory.is_lacking(error):
            raise
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UnavailableError(f"a URI of {scheme}: cannot be used here: {reason}") from None
