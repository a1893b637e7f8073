"""What is free: on the machine, for the process, and in the groups that hold it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from mdec._support import memory

GB = 2**30

V2 = "30 24 0:26 {above} /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
V1 = (
    "31 24 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
    "32 24 0:28 {above} /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
)


def write(root: Path, groups: str, mounts: str) -> None:
    """Write what a process reads of its groups below a made-up root."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(groups)
    (root / "proc/self/mountinfo").write_text(
        f"22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n{mounts}"
    )


def limit(folder: Path, most: int | str, used: int, cache: int = 0) -> None:
    """Write the files of a group of version 2."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.max").write_text(f"{most}\n")
    (folder / "memory.current").write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon {used}\ninactive_file {cache}\n")


def limit_v1(folder: Path, most: int, used: int, cache: int = 0) -> None:
    """Write the files of a group of version 1."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.limit_in_bytes").write_text(f"{most}\n")
    (folder / "memory.usage_in_bytes").write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"cache 1\ntotal_inactive_file {cache}\n")


def test_a_container_that_sees_its_own_group_alone(tmp_path: Path) -> None:
    write(tmp_path, "0::/\n", V2.format(above="/"))
    limit(tmp_path / "sys/fs/cgroup", 2 * GB, GB)
    assert memory._free_in_groups(tmp_path) == GB


def test_the_cache_of_a_group_gives_way(tmp_path: Path) -> None:
    write(tmp_path, "0::/\n", V2.format(above="/"))
    limit(tmp_path / "sys/fs/cgroup", 2 * GB, 2 * GB, cache=GB // 2)
    assert memory._free_in_groups(tmp_path) == GB // 2
    (tmp_path / "sys/fs/cgroup/memory.stat").unlink()
    assert memory._free_in_groups(tmp_path) == 0


def test_the_least_of_nested_groups_counts(tmp_path: Path) -> None:
    write(tmp_path, "0::/user/job/step\n", V2.format(above="/"))
    top = tmp_path / "sys/fs/cgroup"
    limit(top / "user", 5 * GB, GB)
    limit(top / "user/job", "max", GB)
    limit(top / "user/job/step", 8 * GB, GB)
    assert memory._free_in_groups(tmp_path) == 4 * GB
    limit(top / "user/job", 3 * GB, GB)
    assert memory._free_in_groups(tmp_path) == 2 * GB
    limit(top / "user/job", GB, 2 * GB)
    assert memory._free_in_groups(tmp_path) == 0


def test_no_limit_is_none(tmp_path: Path) -> None:
    write(tmp_path, "0::/a\n", V2.format(above="/"))
    limit(tmp_path / "sys/fs/cgroup/a", "max", GB)
    assert memory._free_in_groups(tmp_path) is None


@pytest.mark.parametrize("above", ["/", "/docker/12"])
def test_groups_of_version_1(tmp_path: Path, above: str) -> None:
    groups = "9:cpu,cpuacct:/docker/12\n4:memory:/docker/12\n0::/\n"
    write(tmp_path, groups, V1.format(above=above))
    top = tmp_path / "sys/fs/cgroup/memory"
    limit_v1(top / "docker/12" if above == "/" else top, 2 * GB, GB, cache=GB // 4)
    assert memory._free_in_groups(tmp_path) == 5 * GB // 4
    if above == "/":
        limit_v1(top / "docker", GB, GB // 2)
        limit_v1(top, 2**63 - 4096, GB)
        assert memory._free_in_groups(tmp_path) == GB // 2


def test_a_path_of_the_host_is_looked_up_where_the_container_is(tmp_path: Path) -> None:
    write(tmp_path, "4:memory:/kube/pod/7\n", V1.format(above="/other"))
    limit_v1(tmp_path / "sys/fs/cgroup/memory", 2 * GB, GB)
    assert memory._free_in_groups(tmp_path) == GB


def test_both_versions_beside_each_other(tmp_path: Path) -> None:
    unified = V2.format(above="/").replace("/sys/fs/cgroup", "/sys/fs/cgroup/unified")
    mounts = V1.format(above="/") + unified
    write(tmp_path, "4:memory:/a\n0::/b\n", mounts)
    limit_v1(tmp_path / "sys/fs/cgroup/memory/a", 3 * GB, GB)
    limit(tmp_path / "sys/fs/cgroup/unified/b", 2 * GB, GB)
    assert memory._free_in_groups(tmp_path) == GB


@pytest.mark.parametrize("content", ["", "nonsense\n", "4:memory:/a\n"])
def test_strange_or_absent_files_say_nothing(tmp_path: Path, content: str) -> None:
    assert memory._free_in_groups(tmp_path) is None
    write(tmp_path, content, V1.format(above="/"))
    assert memory._free_in_groups(tmp_path) is None


@pytest.mark.parametrize(("inside", "expected"), [(GB, GB), (2**62, 2 * GB)])
def test_the_least_of_machine_and_groups_counts(
    monkeypatch: pytest.MonkeyPatch, inside: int, expected: int
) -> None:
    monkeypatch.setattr(memory, "_free_in_groups", lambda: inside)
    monkeypatch.setattr(memory, "_free_on_machine", lambda: 2 * GB)
    monkeypatch.setattr(memory, "_free_for_process", lambda: None)
    assert memory.available_memory() == expected
    with pytest.raises(MemoryError, match=r"too much needs 3\.2 GB and .* are free"):
        memory.require_memory(3 * GB, "too much", "take less")


def test_a_machine_without_proc_has_at_most_what_is_built_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def absent() -> None:
        raise FileNotFoundError("/proc/meminfo")

    total = None  # where there is no /proc indeed, nothing else says it
    with suppress(OSError, RuntimeError):
        total = psutil.virtual_memory().total
    monkeypatch.setattr(psutil, "virtual_memory", absent)
    found = memory._free_on_machine()
    assert found is None or total is None or 0.5 * total < found < 1.5 * total
    monkeypatch.delattr("os.sysconf", raising=False)
    assert memory._free_on_machine() is None
