import os

import pytest

from keras_drill.data.atomic import replace_file, replaced_file


def test_an_error_leaves_what_was_there(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("before")
    with pytest.raises(KeyboardInterrupt), replaced_file(path) as beside:
        beside.write_text("half")
        raise KeyboardInterrupt
    assert path.read_text() == "before" and list(tmp_path.iterdir()) == [path]


def test_folders_are_made_and_line_ends_and_permissions_kept(tmp_path):
    path = tmp_path / "b" / "c" / "a.txt"
    replace_file(path, "ä\r\n")
    assert path.read_bytes() == "ä\r\n".encode()
    umask = os.umask(0)
    os.umask(umask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask
    assert [file.name for file in path.parent.iterdir()] == ["a.txt"]


def test_errors_name_the_file_and_not_what_is_beside_it(tmp_path):
    with pytest.raises(OSError, match=r"/proc/a\.txt'$"):
        replace_file("/proc/a.txt", "text")


def test_a_link_is_followed(tmp_path):
    (tmp_path / "a.txt").write_text("before")
    (tmp_path / "link.txt").symlink_to(tmp_path / "a.txt")
    replace_file(tmp_path / "link.txt", "after")
    assert (tmp_path / "link.txt").is_symlink() and (tmp_path / "a.txt").read_text() == "after"


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_devices_and_folders_are_never_replaced(make, tmp_path):
    make(tmp_path / "a")
    with pytest.raises(ValueError, match="must be a new path or that of a regular file"):
        replace_file(tmp_path / "a", "text")
    assert not (tmp_path / "a").is_file()
