"""Files arrive whole or not at all, and no name leads out of the folder."""

from __future__ import annotations

import errno
import io
import zipfile

import pytest

from mdec.app import folder as folders
from mdec.app.folder import UPLOADS, Folder


def upload(client, name, content=b"a,b\n1,2\n"):
    return client.post("/upload", params={"name": name}, content=content)


@pytest.mark.parametrize(
    "name",
    ["../secret.csv", "/etc/passwd", "a/../../x", "", ".", "..", ".mdec-lock", "a\0b"],
)
def test_no_name_leads_out(root, name) -> None:
    with pytest.raises(ValueError, match="is not a file in"):
        Folder(root).path(name)


def test_links_are_refused(root, tmp_path) -> None:
    (tmp_path / "secret.csv").write_text("a,b\n1,2\n")
    (root / "link.csv").symlink_to(tmp_path / "secret.csv")
    (root / "inside.csv").symlink_to(root / "people.csv")
    (root / "out").symlink_to(tmp_path)
    for name in ("link.csv", "inside.csv", "out/secret.csv"):
        with pytest.raises(ValueError, match="a link"):
            Folder(root).path(name)
    assert Folder(root).tables() == ["people.csv"]


def test_a_result_with_a_link_in_it_is_refused(root, client, tmp_path) -> None:
    (tmp_path / "secret").write_text("secret")
    (root / "people-result" / "labels.csv").unlink()
    (root / "people-result" / "labels.csv").symlink_to(tmp_path / "secret")
    for place in ("labels.csv", "everything.zip", "report"):
        answer = client.get(f"/results/people-result/{place}")
        assert answer.status_code == 400
        assert "a link" in answer.json()["error"]


def test_only_files_of_the_result_are_given_away(root, client) -> None:
    (root / "people-result" / "diary.txt").write_text("private")
    for name in ("diary.txt", "..%2Fpeople.csv", "nothing"):
        assert client.get(f"/results/people-result/{name}").status_code in (400, 404)
    answer = client.get("/results/people-result/labels.csv")
    assert answer.content == (root / "people-result" / "labels.csv").read_bytes()
    assert answer.headers["content-disposition"].startswith("attachment")
    packed = client.get("/results/people-result/everything.zip").content
    names = zipfile.ZipFile(io.BytesIO(packed)).namelist()
    assert "people-result/model.npz" in names
    assert "people-result/diary.txt" not in names


def test_results_of_one_table_are_numbered(tmp_path) -> None:
    folder = Folder(tmp_path)
    names = []
    for _ in range(4):
        names.append(folder.free_name("t"))
        (tmp_path / names[-1]).mkdir()
    assert names == ["t-result", "t-result-2", "t-result-3", "t-result-4"]


def test_what_arrives_never_replaces_a_file(root, client) -> None:
    first = upload(client, "t.csv", b"a,b\n1,2\n").json()["file"]
    second = upload(client, "t.csv", b"other").json()["file"]
    assert (first, second) == (f"{UPLOADS}/t.csv", f"{UPLOADS}/t-2.csv")
    assert (root / first).read_bytes() == b"a,b\n1,2\n"
    assert (root / second).read_bytes() == b"other"


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("../../evil.csv", "evil.csv"),
        ("C:\\data\\evil.csv", "evil.csv"),
        ("<script>.csv", "script-.csv"),
        ("a\nb.csv.gz", "a-b.csv.gz"),
    ],
)
def test_names_that_arrive_become_plain(client, name, kept) -> None:
    assert upload(client, name).json()["file"] == f"{UPLOADS}/{kept}"


def test_what_mdec_does_not_read_is_refused(root, client) -> None:
    for name in ("evil.exe", "noending", "", ".csv", "..", "x.html"):
        answer = upload(client, name)
        assert answer.status_code == 400
        assert "no ending" in answer.json()["error"]
    assert not (root / UPLOADS).exists()


def test_a_file_beyond_the_limit_leaves_nothing(root, client) -> None:
    answer = upload(client, "big.csv", b"1" * (2**20 + 1))
    assert "--max-gb" in answer.json()["error"]

    async def chunks():
        for _ in range(40):
            yield b"1" * 2**15

    # Without a length it is noticed on the way.
    answer = upload(client, "big.csv", chunks())
    assert "--max-gb" in answer.json()["error"]
    assert list((root / UPLOADS).iterdir()) == []


def test_a_full_disk_ends_in_one_sentence(root, client, monkeypatch) -> None:
    class Full(io.BytesIO):
        def write(self, _):
            raise OSError(errno.ENOSPC, "No space left on device")

    real = folders.atomic_file

    def full(path):
        made = real(path)

        class Context:
            def __enter__(self):
                made.__enter__()
                return Full()

            def __exit__(self, *ended):
                return made.__exit__(*ended)

        return Context()

    monkeypatch.setattr(folders, "atomic_file", full)
    answer = upload(client, "t.csv")
    assert answer.status_code == 400
    assert "No space left" in answer.json()["error"]
    assert list((root / UPLOADS).iterdir()) == []


def test_results_and_stopped_runs_are_listed(root, client) -> None:
    (root / "stopped" / "checkpoint").mkdir(parents=True)
    (root / "stopped" / "checkpoint" / "checkpoint.json").write_text("{}")
    (root / "other").mkdir()
    (root / "damaged").mkdir()
    (root / "damaged" / "summary.json").write_text("{")
    found = client.post("/api/start", json={}).json()
    assert {each["name"] for each in found["results"]} == {"people-result", "stopped"}
    one = next(each for each in found["results"] if not each.get("stopped"))
    assert (one["n_samples"], one["n_clusters"]) == (60, 3)
    assert found["tables"] == ["people.csv"]
