"""What the program writes into folders of users: no other module creates, replaces or removes files and folders.

No function here changes or removes what this program did not write:

- A file is replaced or removed only if it is regular and begins as files of its kind do, which the caller states as
  a pattern of its first bytes; a name alone proves nothing.
- A folder is removed only if it is empty.
- A `Workspace` begins empty, so all in it is this run's. Only below it are trees removed.

The check comes before the change, and nothing is cleaned up before it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final

from scenarios.paths import component, of_os
from sim.errors import InputError, UnavailableError

START_BYTES: Final = 1 << 12
"""First bytes of a file, which show whether this program wrote it."""
_UNFINISHED: Final = re.compile(r"\.(.+)\.[0-9a-f]{8}")
"""Names of files that are being written; readers and Spark ignore a leading dot."""
REMOVAL: Final = "import shutil\nshutil.rmtree(folder, ignore_errors=True)\n"
"""Program text that removes the workspace `folder`, for a process that outlives the one which made it."""


@contextmanager
def os_errors(path: Path, *, creates_folders: bool = False) -> Iterator[None]:
    """Turn the system's errors of a change into those of `of_os`; `creates_folders`: also those above the path."""
    try:
        yield
    except OSError as error:
        raise of_os(error, f"{path} cannot be written", has_folder=creates_folders or path.parent.is_dir()) from None


# Recognising.


def json_start(*keys: str) -> re.Pattern[bytes]:
    """Start of a JSON file of this program: ``schema_version``, which others write, too, and one of these keys."""
    return re.compile(rb'\A\s*\{\s*"schema_version":\s*\d+,\s*"(%s)":' % "|".join(keys).encode())


def is_own(content: bytes, start: re.Pattern[bytes]) -> bool:
    """Whether a file's content, or its first `START_BYTES`, shows that this program wrote it, or is empty."""
    return not content or start.search(content[:START_BYTES]) is not None


def is_own_file(path: Path, start: re.Pattern[bytes]) -> bool:
    """Whether a path is a regular file, not a link, that this program wrote: `is_own`; raises StorageError if
    unreadable.
    """
    if not stat.S_ISREG(path.lstat().st_mode):
        return False
    with os_errors(path), path.open("rb") as file:
        return is_own(file.read(START_BYTES), start)


def check_own(path: Path, start: re.Pattern[bytes]) -> None:
    """Check that writing a file that the user named replaces only a file of the same kind by this program.

    Devices and pipes contain nothing to lose.

    Raises:
        InputError: another file is at the path.
        StorageError: it cannot be read.
    """
    with os_errors(path), suppress(FileNotFoundError):
        if not stat.S_ISREG(path.stat().st_mode):
            return
        with path.open("rb") as file:
            if not is_own(file.read(START_BYTES), start):
                raise InputError(f"{path} exists, and this command did not write it; name another file")


# Creating and replacing.


def make_folder(path: Path, mode: int = 0o777) -> None:
    """Create a folder and those above it, unless they exist; raises OSError."""
    path.mkdir(mode=mode, parents=True, exist_ok=True)


def below(root: Path, *parts: str, create: bool = False) -> Path:
    """A folder below another, reached without a link; in the root, which the user named, links are followed.

    Raises:
        InputError: a part is unsafe, a link, missing (unless they are created), or no folder.
        StorageError: it cannot be created.
    """
    path = root
    for part in parts:
        path /= component(part)
        if path.is_symlink():
            raise InputError(f"{path} is a link, which is not followed below the folder of the results")
    with os_errors(path, creates_folders=create):
        if create:
            make_folder(path)
        elif not path.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    return path


def write(path: Path, text: str, start: re.Pattern[bytes], *, executable: bool = False) -> None:
    """Write a file that the user named, completely or not at all. A link is followed; `check_own` keeps other files.

    Raises:
        InputError: its folder does not exist, or another file is at the path.
        StorageError: it cannot be written.
    """
    check_own(path, start)
    with os_errors(path), path.open("w", encoding="utf-8") as file:
        try:
            file.write(text)
            file.flush()
        except OSError:
            if path.is_file():
                path.resolve().unlink()
            raise
        if executable:
            path.chmod(0o755)


def create(path: Path, text: str, mode: int = 0o666) -> None:
    """Write a new file.

    Raises:
        InputError: it exists, or its folder does not.
        StorageError: it cannot be written.
    """
    try:
        file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8")
    except FileExistsError:
        raise InputError(f"{path} exists, and is never overwritten; name another file") from None
    except OSError as error:
        raise of_os(error, f"{path} cannot be written", has_folder=path.parent.is_dir()) from None
    with os_errors(path), file:
        file.write(text)


def replace(path: Path, content: bytes, start: re.Pattern[bytes]) -> None:
    """Write a file so that readers see the old or the new content, never a part, also after a power failure.

    Raises:
        InputError: something that this program did not write is at the path.
        OSError: it cannot be written.
    """
    if os.path.lexists(path) and not is_own_file(path, start):
        raise InputError(f"{path} was not written by highwater: move it elsewhere")
    with replaced(path) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def put(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Write a file and its folders in one step, unless something is at the path; raises OSError."""
    if os.path.lexists(path):
        return
    make_folder(path.parent)
    with replaced(path) as file:
        file.write(content)
        os.fchmod(file.fileno(), mode)


@contextmanager
def replaced(path: Path) -> Iterator[IO[bytes]]:
    """A new file, which takes the place of another when the block ends, and is gone if it fails.

    The caller has checked what is there.
    """
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    with beside.open("xb") as file:
        try:
            yield file
            file.flush()
            beside.replace(path)
        except BaseException:
            with suppress(OSError):
                beside.unlink()
            raise


def lock(opened: int, path: Path, what: str) -> None:
    """Lock a file or folder, by its descriptor, until it is closed; raise UnavailableError if another `what` has."""
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise UnavailableError(f"{path}: another {what} is at work there") from None


class Lines:
    """A file of lines to which one process at a time appends.

    A process that was killed while it wrote leaves a part of a line, which `read` cuts off.

    Raises:
        InputError: something that this program did not write is at the path.
        UnavailableError: another process has it open.
        StorageError: it cannot be opened.
    """

    def __init__(self, path: Path, start: re.Pattern[bytes]) -> None:
        self._path = path
        with os_errors(path):
            if os.path.lexists(path) and not is_own_file(path, start):
                raise InputError(f"{path} was not written by highwater: move it elsewhere")
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        try:
            lock(self._file, path, "process")
        except UnavailableError:
            self.close()
            raise

    def read(self) -> list[str]:
        """The whole lines; raises StorageError."""
        with os_errors(self._path):
            content = self._path.read_bytes()
            whole = content.rfind(b"\n") + 1
            os.ftruncate(self._file, whole)
        return content[:whole].decode(errors="replace").splitlines()

    def add(self, line: str) -> None:
        """Append a line, all of it or nothing; raises StorageError."""
        with os_errors(self._path):
            before = os.fstat(self._file).st_size
            left = memoryview(f"{line}\n".encode())
            try:
                while left:
                    left = left[os.write(self._file, left) :]
            except OSError:
                os.ftruncate(self._file, before)
                raise

    def close(self) -> None:
        """Let other processes write."""
        os.close(self._file)


# Removing.


def remove(path: Path, start: re.Pattern[bytes]) -> bool:
    """Remove a file if this program wrote it; returns whether it is gone. Raises OSError."""
    with suppress(FileNotFoundError):
        if not is_own_file(path, start):
            return False
        path.unlink()
    return True


def remove_empty(path: Path) -> None:
    """Remove a folder if it is empty, and no link."""
    with suppress(OSError):
        path.rmdir()


def is_leftover(name: str, files: Mapping[str, re.Pattern[bytes]]) -> bool:
    """Whether a file may be one of `files` (name -> start) that a killed process was writing by `replace`."""
    found = _UNFINISHED.fullmatch(name)
    return found is not None and found[1] in files


def remove_leftovers(folder: Path, files: Mapping[str, re.Pattern[bytes]]) -> None:
    """Remove what killed processes were writing, as far as its first bytes show that."""
    with suppress(FileNotFoundError):
        for path in sorted(folder.iterdir()):
            found = _UNFINISHED.fullmatch(path.name)
            if found and found[1] in files and path.lstat().st_size:
                remove(path, files[found[1]])


# Workspaces.


class Workspace:
    """A folder in which everything belongs to this run, because it was empty or missing before.

    Attributes:
        root: its path.

    Raises:
        InputError: there is something in it.
        OSError: it cannot be created.
    """

    def __init__(self, root: Path) -> None:
        make_folder(root)
        if any(root.iterdir()):
            raise InputError(f"{root} is there already, and holds something; choose another folder")
        self.root = root.resolve()

    def _own(self, path: Path) -> Path:
        parent = path.parent.resolve()
        assert path.name not in ("", ".."), path
        assert parent == self.root or self.root in parent.parents, path
        return path

    def make(self, path: Path) -> None:
        """Create a folder, unless it exists."""
        make_folder(self._own(path))

    def write(self, path: Path, content: bytes | str) -> None:
        """Write a file and its folders."""
        make_folder(self._own(path).parent)
        path.write_bytes(content.encode() if isinstance(content, str) else content)

    def append(self, path: Path) -> IO[bytes]:
        """Open a file to append to it; its folders are created."""
        make_folder(self._own(path).parent)
        return path.open("ab")

    def cut(self, path: Path, length: int) -> None:
        """Cut a file off after `length` bytes."""
        os.truncate(self._own(path), length)

    def move(self, path: Path, to: Path) -> None:
        """Rename a file or folder."""
        self._own(path).rename(self._own(to))

    def remove(self, path: Path) -> None:
        """Remove a file or a whole folder, if it exists."""
        if self._own(path).is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)

    def end(self) -> None:
        """Remove all of it."""
        shutil.rmtree(self.root, ignore_errors=True)


def new_workspace(within: Path | None = None) -> Workspace:
    """A new temporary folder; raises OSError."""
    return Workspace(Path(tempfile.mkdtemp(prefix="highwater-", dir=within)))


@contextmanager
def workspace(within: Path | None = None) -> Iterator[Workspace]:
    """A temporary folder that is removed at the end; raises OSError."""
    made = new_workspace(within)
    try:
        yield made
    finally:
        made.end()
