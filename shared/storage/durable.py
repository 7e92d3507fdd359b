"""Folders and names that survive a power cut."""

import errno
import os
from pathlib import Path


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, where the file system knows how to."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some network mounts sync no folders: their server does
            raise
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Make a folder and its parents, each name durable; the umask decides who may read them."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)
