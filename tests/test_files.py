"""Files: written whole, through no link, and checked before any work."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from implicit_bias.runs.reports import check_writable
from tests.commands import full_disk, home, results, run
from tests.long import some_of

FILES = home(check_writable)
OLD, NEW = b"what was there", b"what is new" * 1000


def test_a_file_is_replaced_as_a_whole_and_nothing_else_is_left(tmp_path) -> None:
    path = tmp_path / "x"
    for content in (OLD, NEW, b""):
        FILES.write_atomically(path, content)
        assert path.read_bytes() == content
        assert os.listdir(tmp_path) == ["x"]


def test_a_full_disk_is_an_error_with_the_path_and_the_old_file_stays(tmp_path) -> None:
    path = tmp_path / "x"
    path.write_bytes(OLD)
    with full_disk(), pytest.raises(OSError, match=f"File too large: '{path}'"):
        FILES.write_atomically(path, NEW)
    assert path.read_bytes() == OLD
    assert os.listdir(tmp_path) == ["x"]


@pytest.mark.parametrize("target", ["there", "nowhere"])
def test_a_link_is_refused_and_neither_it_nor_its_target_is_written(target, tmp_path) -> None:
    (tmp_path / "there").write_bytes(OLD)
    link = tmp_path / "link.png"
    link.symlink_to(tmp_path / target)
    with pytest.raises(OSError, match=r"it is a link.*link\.png'"):
        FILES.write_atomically(link, NEW)
    with pytest.raises(ValueError, match=r"cannot write .*link\.png': it is a link"):
        check_writable(link, folder=False)
    assert link.is_symlink() and sorted(os.listdir(tmp_path)) == ["link.png", "there"]
    assert (tmp_path / "there").read_bytes() == OLD


def test_a_device_or_a_pipe_is_no_file(tmp_path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(OSError, match="no plain file"):
        FILES.write_atomically(tmp_path / "pipe.png", NEW)
    with pytest.raises(ValueError, match="no plain file"):
        check_writable(tmp_path / "pipe.png", folder=False)
    assert os.listdir(tmp_path) == ["pipe.png"]


def test_a_planted_link_is_not_followed_whatever_its_name(tmp_path, monkeypatch) -> None:
    (tmp_path / "victim").write_bytes(OLD)
    monkeypatch.setattr(FILES.secrets, "token_hex", lambda n: "foreseen")
    (tmp_path / ".foreseen.new").symlink_to(tmp_path / "victim")
    with pytest.raises(FileExistsError, match=r"/x'"):
        FILES.write_atomically(tmp_path / "x", NEW)
    assert (tmp_path / "victim").read_bytes() == OLD
    assert sorted(os.listdir(tmp_path)) == [".foreseen.new", "victim"]


def test_content_is_on_the_disk_before_it_has_its_name_and_the_name_after(
    tmp_path, monkeypatch
) -> None:
    calls: list[tuple[str, bool]] = []
    sync, replace = os.fsync, os.replace

    def fsync(handle: int) -> None:
        calls.append(("sync", stat.S_ISDIR(os.fstat(handle).st_mode)))
        sync(handle)

    def renamed(*paths: Path) -> None:
        calls.append(("replace", False))
        replace(*paths)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", renamed)
    FILES.write_atomically(tmp_path / "x", NEW)
    assert calls == [("sync", False), ("replace", False), ("sync", True)]


def test_files_are_as_readable_as_the_user_has_them(tmp_path) -> None:
    before = os.umask(0o027)
    try:
        FILES.write_atomically(tmp_path / "x", NEW)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o640


def test_many_writers_of_one_file_leave_the_content_of_one_of_them(tmp_path) -> None:
    path = tmp_path / "x"
    contents = [bytes([i]) * 100_000 for i in range(8)]

    def write(content: bytes) -> None:
        for _ in range(20):
            FILES.write_atomically(path, content)

    threads = [threading.Thread(target=write, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert not path.exists() or path.read_bytes() in contents
    assert path.read_bytes() in contents and os.listdir(tmp_path) == ["x"]


def test_what_killed_writers_have_left_is_cleared_away(tmp_path) -> None:
    old, young, other = tmp_path / ".a.new", tmp_path / ".b.new", tmp_path / "c.new"
    for path in (old, young, other):
        path.write_bytes(OLD)
    for path in (old, other):
        os.utime(path, (0, 0))
    FILES.clear_unfinished(tmp_path)
    assert sorted(os.listdir(tmp_path)) == [".b.new", "c.new"]


PICTURED = ("--model", "linear", "--n-train", 30, "--steps", 20)


@pytest.mark.parametrize(("option", "name"), [("--plot", "x.png"), ("--report", "x.html")])
def test_pictures_and_pages_through_a_link_are_refused_before_any_work(
    option, name, tmp_path
) -> None:
    (tmp_path / "victim").write_bytes(OLD)
    (tmp_path / name).symlink_to(tmp_path / "victim")
    refused = run(*PICTURED, option, tmp_path / name)
    assert refused.exit_code == 2 and "it is a link" in refused.stderr
    assert "solving" not in refused.stderr
    assert (tmp_path / "victim").read_bytes() == OLD


@pytest.mark.parametrize("ending", some_of(["png", "svg", "pdf"], one_in=3))
def test_a_picture_is_written_whole_in_the_format_of_its_ending(ending, tmp_path) -> None:
    path = tmp_path / f"x.{ending}"
    results(*PICTURED, "--plot", path)
    content = path.read_bytes()
    assert content.startswith({"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[ending])
    with full_disk():
        failed = run(*PICTURED, "--plot", path)
    assert failed.exit_code == 2 and f"File too large: '{path}'" in failed.stderr
    assert path.read_bytes() == content and os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize(
    ("path", "folder"),
    [("new.png", False), ("old.png", False), ("new", True), ("new/deep/down", True), ("", True)],
)
def test_paths_that_can_be_written_pass_and_nothing_is_made(tmp_path, path, folder) -> None:
    (tmp_path / "old.png").touch()
    check_writable(tmp_path / path, folder=folder)
    check_writable(str(tmp_path / path), folder=folder)
    assert os.listdir(tmp_path) == ["old.png"]


@pytest.mark.parametrize("folder", [False, True])
def test_relative_paths_are_checked_in_the_working_folder(tmp_path, monkeypatch, folder) -> None:
    monkeypatch.chdir(tmp_path)
    check_writable("new", folder=folder)


@pytest.mark.parametrize(
    ("path", "folder", "message"),
    [
        ("file", True, "file' is a file: name a folder"),
        ("file/below", True, "cannot write .*below'.*file' is a file, not a folder"),
        ("file/below/deep", True, "cannot write .*deep'.*file' is a file, not a folder"),
        ("file/x.png", False, "cannot write .*x.png'.*file' is a file, not a folder"),
        ("", False, "it is a folder, name a file"),
        ("missing/x.png", False, "there is no folder .*missing'"),
    ],
)
def test_what_stands_in_the_way_of_a_path_is_named(tmp_path, path, folder, message) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match=message):
        check_writable(tmp_path / path, folder=folder)


@pytest.mark.parametrize(("path", "folder"), [("x.png", False), ("new", True)])
def test_a_folder_without_permission_to_write_is_named(tmp_path, monkeypatch, path, folder) -> None:
    # Permission bits do not bind root, who may run these tests, so the answer is played.
    def access(asked: Path, mode: int) -> bool:
        assert mode == os.W_OK | os.X_OK
        return Path(asked) != tmp_path

    monkeypatch.setattr(os, "access", access)
    with pytest.raises(ValueError, match=f"no permission to write in '{tmp_path}'"):
        check_writable(tmp_path / path, folder=folder)
