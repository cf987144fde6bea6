"""What is remembered: in memory, in a file, and on a real Valkey or Redis server."""

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import redis

from function.state import Store, open_store
from function.state.fallback import Fallback
from function.state.file import File
from function.state.memory import Memory
from function.state.redis import SERVER_SECONDS, Redis
from function.state.store import StoreLost
from tests.ports import free_port
from tests.valkey import ValkeyServer, running_valkey

RETRY = 0.05


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ValkeyServer]:
    with running_valkey(tmp_path) as running:
        yield running


@pytest.fixture(params=["memory", "file", "server"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    match request.param:
        case "memory":
            opened = open_store("")
        case "file":
            opened = open_store(str(tmp_path / "state.db"))
        case _:
            opened = open_store(request.getfixturevalue("server").address)
    yield opened
    opened.close()


def within(seconds: float, condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def test_a_value_is_kept_replaced_and_removed(store: Store) -> None:
    assert store.get("a") is None
    store.set("a", "1 × 😀\n", 60)
    assert store.get("a") == "1 × 😀\n"
    store.set("a", "2", 60)
    assert store.get("a") == "2"
    store.set("a", "", 60)
    assert store.get("a") is None
    store.set("a", "", 60)


def test_a_value_expires(store: Store) -> None:
    store.set("short", "1", 0.05)
    store.set("long", "1", 60)
    assert within(2, lambda: store.get("short") is None)
    assert store.get("long") == "1"


def test_counts_begin_anew_after_their_time(store: Store) -> None:
    assert [store.count("a", 60) for _ in range(3)] == [1, 2, 3]
    assert store.count("b", 1) == 1
    assert store.count("b", 60) == 2  # the first one's time counts
    time.sleep(1.05)
    assert store.count("b", 60) == 1


def test_counts_are_atomic(store: Store) -> None:
    with ThreadPoolExecutor(8) as pool:
        counted = list(pool.map(lambda _: store.count("a", 60), range(200)))
    assert sorted(counted) == list(range(1, 201))


def test_a_working_store_says_so(store: Store) -> None:
    assert store.status()["state"] == "ok"


def test_replicas_share_counts_and_values_through_the_server(server: ValkeyServer) -> None:
    one, other = open_store(server.address), open_store(server.address.replace("redis", "valkey"))
    one.set("mode:1", "compact", 60)
    assert other.get("mode:1") == "compact"
    assert [one.count("rate", 60), other.count("rate", 60)] == [1, 2]
    one.close()
    other.close()


def test_counts_are_atomic_among_processes(tmp_path: Path) -> None:
    script = (
        "import sys; from function.state import open_store; s = open_store(sys.argv[1])\n"
        "print(*(s.count('a', 60) for _ in range(100)))"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "state.db")]
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    processes = [
        subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) for _ in range(3)
    ]
    counted = [int(n) for process in processes for n in process.communicate()[0].split()]
    assert sorted(counted) == list(range(1, 301))


def test_memory_is_bounded_and_forgets_the_oldest() -> None:
    memory = Memory(max_bytes=10_000)
    for n in range(100):
        memory.set(str(n), "x" * 100, 60)
    assert memory.get("0") is None
    assert memory.get("99") == "x" * 100
    memory.set("huge", "x" * 10_000, 60)
    assert memory.get("huge") is None
    memory.set("after", "1", 60)
    assert memory.get("after") == "1"


def test_a_file_is_bounded_and_forgets_what_would_expire_first(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    file = File(path, max_pages=20)
    file.set("preference", "compact", 400 * 86400)
    for n in range(100):
        file.set(str(n), "x" * 4000, 60 + n)
    assert file.get("99") == "x" * 4000
    assert file.get("0") is None
    assert file.get("preference") == "compact"
    file.close()
    assert path.stat().st_size <= 20 * 4096


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_output_evicts_neither_settings_nor_limits_nor_leases(kind: str, tmp_path: Path) -> None:
    store = Memory(max_bytes=100_000) if kind == "memory" else File(tmp_path / "s.db", max_pages=40)
    store.set("mode:1", "compact", 400 * 86400)
    assert [store.count(key, 60) for key in ("started:1", "lease:1")] == [1, 1]
    store.set("answer:0", "x" * 1000, 3600)
    for n in range(1, 300):
        store.set(f"answer:{n}", "x" * 1000, 7200)
    assert store.get("answer:0") is None
    assert store.get("answer:299") is not None
    assert store.get("mode:1") == "compact"
    assert [store.count(key, 60) for key in ("started:1", "lease:1")] == [2, 2]
    store.close()


def test_what_has_expired_takes_no_room() -> None:
    memory = Memory(max_bytes=100_000)
    for n in range(200):
        memory.set(f"short:{n}", "1", 0.001)
    time.sleep(0.01)
    for n in range(200):
        memory.set(f"long:{n}", "1", 60)
    assert memory.get("long:0") == "1"


@pytest.mark.parametrize("text", ["\ud800", "a\x00b", "é", "9" * 30, "[" * 1000])
def test_any_text_is_taken_as_key_and_value_without_an_error(store: Store, text: str) -> None:
    store.set(text, text, 60)
    assert store.get(text) in (text, "?")
    assert store.count(text, 60) >= 1
    assert store.status()["state"] == "ok"


def test_a_row_that_somebody_else_wrote_raises_nothing(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    store = open_store(str(path))
    store.set("a", "1", 60)
    with contextlib.closing(sqlite3.connect(path)) as other, other:
        other.execute("UPDATE entries SET value = CAST(x'ff00' AS TEXT)")
    assert isinstance(store.get("a"), str)
    assert store.count("a", 60) >= 1
    assert store.status()["state"] == "ok"
    store.close()


def test_a_key_of_another_type_or_without_an_end_costs_only_itself(server: ValkeyServer) -> None:
    client, store = redis.Redis(port=server.port), open_store(server.address)
    client.rpush("calcubot:list", "x")
    client.set("calcubot:word", "x")
    client.set("calcubot:lease", "1")
    assert store.get("list") is None
    assert store.count("word", 60) == 1
    assert store.count("lease", 0.05) == 2
    assert within(2, lambda: store.count("lease", 60) == 1)
    assert store.status()["state"] == "ok"
    client.close()
    store.close()


def test_a_file_keeps_its_values_for_the_next_start(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    for expected in (None, "compact"):
        store = open_store(str(path))
        assert store.get("mode:1") == expected
        store.set("mode:1", "compact", 60)
        store.close()
    assert path.stat().st_mode & 0o077 == 0


def test_a_lost_file_costs_nothing_and_is_used_again_when_it_is_back(tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    store = Fallback(File(folder / "state.db"), RETRY)
    store.set("a", "1", 60)
    assert store.get("a") == "1"
    assert [store.count("n", 60) for _ in range(2)] == [1, 2]
    assert store.status()["state"] == "degraded"
    assert str(folder) in store.status()["error"]
    folder.mkdir()
    assert within(5, lambda: store.status()["state"] == "ok")
    store.close()
    with contextlib.closing(open_store(str(folder / "state.db"))) as again:
        assert again.get("a") == "1"


@pytest.mark.parametrize("content", [b"this is no database", b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_file_of_another_kind_is_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "state.db"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"STORE cannot be used: .*state\.db: "):
        open_store(str(path))
    store = Fallback(File(path))
    store.set("a", "1", 60)
    assert store.get("a") == "1"
    assert store.status()["state"] == "degraded"
    assert path.read_bytes() == content


def test_a_full_disk_costs_nothing(tmp_path: Path) -> None:
    with mounted_disk(tmp_path / "small") as disk:
        store = Fallback(File(disk / "state.db"), RETRY)
        store.set("before", "1", 60)
        assert store.status()["state"] == "ok"
        filler = disk / "filler"
        with pytest.raises(OSError, match="No space"):
            filler.write_bytes(bytes(9 << 20))
        for n in range(200):
            store.set(f"full:{n}", "x" * 4000, 60)
        assert store.get("full:199") == "x" * 4000
        assert store.status()["state"] == "degraded"
        filler.unlink()
        assert within(5, lambda: store.status()["state"] == "ok")
        assert store.get("full:199") == "x" * 4000
        store.close()


class mounted_disk:  # noqa: N801  used like a function
    """A file system of 8 MiB."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> Path:
        self._folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(self._folder)]
        if subprocess.run(command, check=False, capture_output=True).returncode:
            pytest.skip("mounting a small file system needs CAP_SYS_ADMIN")
        return self._folder

    def __exit__(self, *_: object) -> None:
        subprocess.run(["umount", "--lazy", str(self._folder)], check=True)


def test_a_dead_server_costs_nothing_and_is_used_again_when_it_is_back(
    server: ValkeyServer,
) -> None:
    store = Fallback(Redis(server.address), RETRY)
    store.set("before", "1", 60)
    server.stop()
    store.set("meanwhile", "2", 60)
    assert store.get("before") == "1"
    assert store.get("meanwhile") == "2"
    assert store.count("n", 60) == 1
    assert store.status()["state"] == "degraded"
    assert "refused" in store.status()["error"]
    server.start()
    assert within(5, lambda: store.status()["state"] == "ok")
    other = Redis(server.address)
    assert other.get("meanwhile") == "2"
    other.close()
    store.close()


def test_a_server_that_does_not_answer_delays_once(server: ValkeyServer) -> None:
    store = Fallback(Redis(server.address), retry_seconds=60)
    store.set("a", "1", 60)
    server.send(signal.SIGSTOP)
    started = time.monotonic()
    for _ in range(100):
        assert store.get("a") == "1"
    assert time.monotonic() - started < 3 * SERVER_SECONDS
    server.send(signal.SIGCONT)
    store.close()


def test_a_server_out_of_memory_costs_nothing(server: ValkeyServer) -> None:
    client = redis.Redis(port=server.port)
    client.config_set("maxmemory", "1")
    store = Fallback(Redis(server.address), retry_seconds=0)
    store.set("a", "1", 60)
    assert client.get("calcubot:a") is None
    client.config_set("maxmemory", "0")
    assert store.status()["state"] == "ok"
    assert client.get("calcubot:a") == b"1"
    client.close()
    store.close()


def test_a_server_restarted_between_two_commands_is_not_lost(server: ValkeyServer) -> None:
    store = Fallback(Redis(server.address), retry_seconds=60)
    store.set("a", "1", 60)
    server.stop()
    server.start()
    store.set("a", "2", 60)
    assert store.status()["state"] == "ok"
    store.close()


def test_many_threads_survive_a_server_that_dies(server: ValkeyServer) -> None:
    store = Fallback(Redis(server.address), RETRY)
    failures: list[str] = []
    done = threading.Event()

    def use(name: int) -> None:
        n = 0
        while not done.is_set():
            n += 1
            store.set(f"{name}", str(n), 60)
            if store.get(f"{name}") != str(n):
                failures.append(f"{name}: {n}")

    threads = [threading.Thread(target=use, args=[n]) for n in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(0.2)
    server.stop()
    time.sleep(0.3)
    done.set()
    for thread in threads:
        thread.join()
    assert failures == []


@pytest.mark.parametrize(
    "address",
    [
        "http://localhost",
        "postgres://x",
        "redis://host:port",
        "localhost:6379",
        "redis://localhost?ssl_ca_cert=/x",
        "redis://:pass/word-tail@localhost",
        "rediss://localhost?ssl_cert_reqs=nonsense",
    ],
)
def test_an_address_that_cannot_work_is_refused_with_its_cure(address: str) -> None:
    with pytest.raises(ValueError, match=r"^STORE.*redis://") as refused:
        open_store(address)
    assert "word-tail" not in str(refused.value)


def test_a_path_that_cannot_work_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "absent" / "state.db", tmp_path / "file" / "state.db"):
        (tmp_path / "file").touch()
        with pytest.raises(ValueError, match=f"STORE cannot be used: {path}: "):
            open_store(str(path))


def test_a_server_that_wants_another_password_is_refused(server: ValkeyServer) -> None:
    client = redis.Redis(port=server.port)
    client.config_set("requirepass", "right-word")
    for address in (server.address, server.address.replace("//", "//:wrong-word@")):
        with pytest.raises(ValueError, match="STORE cannot be used") as refused:
            open_store(address)
        assert "-word" not in str(refused.value)
    open_store(server.address.replace("//", "//:right-word@")).close()
    with pytest.raises(ValueError, match="DB index"):
        open_store(server.address.replace("//", "//:right-word@") + "/99")
    client.close()


def test_a_password_is_in_no_status() -> None:
    store = open_store(f"redis://:secret-word@127.0.0.1:{free_port()}")
    store.get("a")
    assert store.status()["state"] == "degraded"
    assert "secret-word" not in str(store.status())


def test_what_a_lost_primary_raises_is_one_kind(tmp_path: Path) -> None:
    with pytest.raises(StoreLost):
        File(tmp_path / "absent" / "state.db").get("a")
