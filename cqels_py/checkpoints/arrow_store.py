"""Objects in the file systems that pyarrow knows: S3, Google Cloud Storage, Azure, HDFS."""

from __future__ import annotations

import uuid
from contextlib import suppress
from typing import TYPE_CHECKING

from cqels_py.checkpoints.durable_files import StorageError

if TYPE_CHECKING:
    import pyarrow.fs

_ASIDE = ".aside"


class ArrowStore:
    """A folder of a file system; `shown`: its address in messages. `renames`: files are written aside and renamed, as where one
    is seen before it is complete.

    Of an upload that fails, nothing or a part may be left under the object's name: it is removed if possible, and otherwise its
    digest tells.
    """

    def __init__(self, system: pyarrow.fs.FileSystem, path: str, shown: str, *, renames: bool = False) -> None:
        self._system = system
        self._path = path
        self._shown = shown.partition("?")[0]
        self._renames = renames

    def put(self, name: str, data: bytes | memoryview) -> None:
        path = f"{self._path}/{name}"
        written = f"{path}.{uuid.uuid4().hex[:12]}{_ASIDE}" if self._renames else path
        try:
            if self._renames:
                self._system.create_dir(self._path, recursive=True)
            self._upload(written, data)
            if self._renames:
                self._system.move(written, path)
        except OSError as error:
            raise StorageError(f"cannot write the state {self._shown}/{name}: {error}") from error

    def _upload(self, path: str, data: bytes | memoryview) -> None:
        try:
            # Whole, so that nothing can happen between two pieces: leaving the block completes the upload.
            with self._system.open_output_stream(path, compression=None, buffer_size=None) as out:
                out.write(data)
        except BaseException:
            self._remove(path)
            raise

    def _remove(self, path: str) -> None:
        """Remove the part that an upload may have left; if that is not possible, its digest tells."""
        with suppress(OSError):
            self._system.delete_file(path)

    def get(self, name: str) -> bytes:
        try:
            with self._system.open_input_file(f"{self._path}/{name}") as file:
                content: bytes = file.read()
                return content
        except OSError as error:
            raise StorageError(f"cannot read the state {self._shown}/{name}: {error}") from error

    def names(self) -> list[str]:
        import pyarrow.fs as fs

        try:
            found = self._system.get_file_info(fs.FileSelector(self._path, allow_not_found=True))
        except OSError as error:
            raise StorageError(f"cannot list the state {self._shown}: {error}") from error
        return sorted(each.base_name for each in found if each.is_file and not each.base_name.endswith(_ASIDE))

    def delete(self, name: str) -> None:
        try:
            self._system.delete_file(f"{self._path}/{name}")
        except FileNotFoundError:
            pass
        except OSError as error:
            raise StorageError(f"cannot remove the state {self._shown}/{name}: {error}") from error
