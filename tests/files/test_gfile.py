"""tf.io.gfile: files and folders of this machine, with TensorFlow's results and errors."""

from __future__ import annotations

import os

import pytest

import gtape as tf

g = tf.io.gfile
errors = tf.errors


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.makedirs("d/e")
    (tmp_path / "d/a.txt").write_bytes(b"one\ntwo\r\nthree")
    (tmp_path / "d/.h").touch()
    (tmp_path / "d/e/z").touch()
    return tmp_path


def test_what_is_there(folder):
    assert g.exists("d") and g.exists(b"d/a.txt") and g.exists(folder / "d") and not g.exists("")
    assert g.exists("file://" + str(folder / "d")) and g.exists(tf.constant("d"))
    assert g.isdir("d") and not g.isdir("d/a.txt")
    assert g.listdir("d") == [".h", "a.txt", "e"]
    assert g.glob("d/*") == ["d/.h", "d/a.txt", "d/e"]
    assert g.glob(["d/*.txt", "d/e/*"]) == ["d/a.txt", "d/e/z"] and g.glob("nope/*") == []
    assert g.stat("d/a.txt").length == 14 and not g.stat("d/a.txt").is_directory
    assert g.stat("d").is_directory and g.stat("d/a.txt").mtime_nsec > 0
    assert list(g.walk("d")) == [("d", ["e"], [".h", "a.txt"]), ("d/e", [], ["z"])]
    assert next(g.walk("d", topdown=False)) == ("d/e", [], ["z"])
    assert list(g.walk("nope")) == []
    assert g.join("a", "b", "/c") == "/c" and g.join("", "b") == "b"


def test_making_and_removing(folder):
    g.mkdir("d")
    g.makedirs("q/r/s")
    g.makedirs("q/r/s")
    g.copy("d/a.txt", "q/copy")
    g.copy("d/e/z", "q/copy", overwrite=True)
    assert g.stat("q/copy").length == 0
    g.rename("d/a.txt", "q/moved")
    assert g.listdir("q") == ["copy", "moved", "r"]
    g.remove("q/moved")
    g.rmtree("q")
    assert not g.exists("q")


@pytest.mark.parametrize("call, error", [
    (lambda: g.listdir("nope"), errors.NotFoundError),
    (lambda: g.listdir("d/a.txt"), errors.NotFoundError),
    (lambda: g.mkdir("q/r"), errors.NotFoundError),
    (lambda: g.makedirs("d/a.txt"), errors.FailedPreconditionError),
    (lambda: g.remove("nope"), errors.NotFoundError),
    (lambda: g.remove("d"), errors.FailedPreconditionError),
    (lambda: g.rmtree("nope"), errors.NotFoundError),
    (lambda: g.rename("nope", "x"), errors.NotFoundError),
    (lambda: g.rename("d/a.txt", "d/.h"), errors.AlreadyExistsError),
    (lambda: g.copy("d/a.txt", "d/.h"), errors.AlreadyExistsError),
    (lambda: g.copy("nope", "x"), errors.NotFoundError),
    (lambda: g.copy("d", "dd"), errors.InvalidArgumentError),
    (lambda: g.stat("nope"), errors.NotFoundError),
    (lambda: g.exists("s3://bucket/x"), errors.UnimplementedError),
    (lambda: g.exists("a\0b"), errors.InvalidArgumentError),
    (lambda: g.exists(None), TypeError)])
def test_what_cannot_be_done_is_the_error_that_tensorflow_has(folder, call, error):
    with pytest.raises(error):
        call()
    assert g.exists("d/a.txt") and g.exists("d/.h")


def test_reading_text_and_bytes(folder):
    with g.GFile("d/a.txt") as file:
        assert file.read(2) == "on" and file.readline() == "e\n" and file.tell() == 4
        assert file.readlines() == ["two\r\n", "three"] and file.read() == ""
    assert list(g.GFile("d/a.txt", "rb")) == [b"one\n", b"two\r\n", b"three"]
    assert g.GFile("d/a.txt").size() == 14 and g.GFile("d/a.txt").mode == "r"


def test_writing_and_going_back(folder):
    with g.GFile("d/p", "w+") as file:
        file.write("hé")
        file.write(b"llo\nworld")
        file.flush()
        file.seek(0)
        assert file.readline() == "héllo\n"
        assert file.size() == 12
    with g.GFile("d/p", "a") as file:
        file.write("!")
    assert g.GFile("d/p", "rb").read() == "héllo\nworld!".encode()
    with g.GFile("d/empty", "w"):
        pass
    assert g.stat("d/empty").length == 0


@pytest.mark.parametrize("call, error", [
    (lambda: g.GFile("nope").read(), errors.NotFoundError),
    (lambda: g.GFile("d").read(), errors.FailedPreconditionError),
    (lambda: g.GFile("d/a.txt").write("x"), errors.PermissionDeniedError),
    (lambda: g.GFile("d/n", "w").read(), errors.PermissionDeniedError),
    (lambda: g.GFile("nodir/x", "w").write("x"), errors.NotFoundError),
    (lambda: g.GFile("d/n", "x"), errors.InvalidArgumentError)])
def test_what_a_file_refuses(folder, call, error):
    with pytest.raises(error):
        call()


def test_a_file_is_opened_when_it_is_first_used(folder):
    file = g.GFile("later")
    (folder / "later").write_text("now")
    assert file.read() == "now"


def test_whole_files_as_tensors(folder):
    tf.io.write_file("new/folder/f", b"a\0b")
    assert tf.io.read_file("new/folder/f").numpy() == b"a\0b"
    assert tf.io.read_file(folder / "new/folder/f").dtype == tf.string
    assert tf.io.matching_files(["d/a*", "d/e/*"]).numpy().tolist() == [b"d/a.txt", b"d/e/z"]
    assert tf.io.matching_files("nope*").shape == (0,)
    with pytest.raises(errors.NotFoundError, match="nope; No such file"):
        tf.io.read_file("nope")
    with pytest.raises(errors.FailedPreconditionError, match="Is a directory"):
        tf.io.read_file("d")
    with pytest.raises(errors.InvalidArgumentError, match="scalar"):
        tf.io.read_file(["d/a.txt"])
    with pytest.raises(tf.errors.OpError):
        tf.io.write_file("d", "x")


def test_a_traced_function_reads_and_writes_at_every_call(folder):
    @tf.function
    def copied(path):
        content = tf.io.read_file(path)
        tf.io.write_file("copy", content)
        return content

    for content in (b"first", b"second"):
        (folder / "f").write_bytes(content)
        assert copied(tf.constant("f")).numpy() == content
        assert (folder / "copy").read_bytes() == content
