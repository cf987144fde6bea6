"""Two programs at once, or one after the other: a hostile one leaves the other alone."""

import os
import platform
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.fork_server.program import encode
from sandbox.fork_server.zygote_process import KilledFromOutside
from sandbox.kernel.syscalls import TABLES
from tests.sandbox.guests import WITHOUT, guests

NUMBERS = f"numbers = {TABLES[platform.machine()]!r}\n"  # the tables are not in guests

# Attacks every process whose number is near, in every way that names a process; prints what worked.
ATTACK = """
import ctypes, os, resource, signal
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *arguments):
    return libc.syscall(ctypes.c_long(numbers[name]), *map(ctypes.c_long, arguments)) >= 0
worked = set()
for pid in range(2, os.getpid() + 16):
    if pid == os.getpid():
        continue
    ways = {
        "see": lambda: call("sched_getaffinity", pid, 128, ctypes.addressof(mask))
            or call("getpgid", pid) or call("getpriority", 0, pid) or call("kill", pid, 0),
        "hold": lambda: call("pidfd_open", pid, 0),
        "limit": lambda: call("prlimit64", pid, resource.RLIMIT_CPU, zeros, 0),
        "slow": lambda: call("setpriority", 0, pid, 19) or call("sched_setaffinity", pid, 8, zeros),
        "read": lambda: call("process_vm_readv", pid, iov, 1, iov, 1, 0),
        "trace": lambda: call("ptrace", 16, pid, 0, 0),
        "stop": lambda: call("kill", pid, signal.SIGSTOP) or call("tkill", pid, signal.SIGSTOP),
        "end": lambda: call("kill", pid, signal.SIGKILL),
    }
    mask = (ctypes.c_char * 128)()
    buffer = (ctypes.c_long * 2)(0, 0)
    zeros = ctypes.addressof(buffer)
    pair = (ctypes.c_void_p * 2)(ctypes.addressof(buffer), 16)
    iov = ctypes.addressof(pair)
    worked |= {name for name, way in ways.items() if way()}
print(*sorted(worked))
"""
# Long enough to be there while the attack goes on.
WORK = "import time\ntotal = sum(n % 7 for n in range(10**6))\ntime.sleep(2)\ntotal"
ANSWER = f"{sum(n % 7 for n in range(10**6))}\n"


def attacked(started):
    """Run benign programs with an attacker among them; return its output and their outcomes.

    One that is killed is not run again, as it would be for a user.
    """

    def work():
        try:
            return started.run(encode(WORK, unchecked=True), 10)
        except KilledFromOutside as killed:
            return killed.outcome

    with ThreadPoolExecutor(3) as pool:
        benign = [pool.submit(work) for _ in range(2)]
        time.sleep(0.7)  # they have started
        attacker = pool.submit(started.run_source, NUMBERS + ATTACK)
        return attacker.result().output.split(), [future.result() for future in benign]


def test_a_program_cannot_see_signal_slow_or_read_another(policy):
    with guests(policy) as started:
        worked, benign = attacked(started)
        assert started.run_source("2+2").output == "4\n"
    assert worked == []
    assert [outcome.output for outcome in benign] == [ANSWER, ANSWER]


def test_without_the_layers_it_could(policy):
    with guests(policy) as started:
        if "namespaces" not in started.layers:
            pytest.skip("the attack would reach the machine's own processes")
    with guests(policy, *WITHOUT.keys() - {"namespaces"}) as started:
        assert "namespaces" in started.layers
        worked, benign = attacked(started)
    assert {"see", "hold", "stop", "end"} <= set(worked)
    assert [outcome.output for outcome in benign] != [ANSWER, ANSWER]


# Changes whatever a later program may meet.
LITTER = """
import builtins, ctypes, gc, json, math, os, random, sys
left = []
def leave(name, act):
    try:
        act()
        left.append(name)
    except BaseException as error:
        pass
for folder in ('/tmp', '/var/tmp', '/dev/shm', '.', os.path.expanduser('~')):
    leave('file in ' + folder, lambda: open(folder + '/left-behind', 'w'))
    leave('folder in ' + folder, lambda: os.mkdir(folder + '/left-behind.d'))
libc = ctypes.CDLL(None, use_errno=True)
for name, *arguments in (
    ('shmget', 4242, 4096, 0o1666), ('semget', 4242, 1, 0o1666), ('msgget', 4242, 0o1666),
    ('add_key', b'user', b'left', b'behind', 6, -4), ('memfd_create', b'left', 0),
    ('mq_open', b'left', 0o102, 0o666, 0), ('setsid',), ('sethostname', b'left', 4),
):
    words = [a if isinstance(a, bytes) else ctypes.c_long(a) for a in arguments]
    if libc.syscall(ctypes.c_long(numbers[name]), *words) >= 0:
        left.append(name)
print(*left)
os.environ['LEFT'] = 'behind'
os.umask(0)
math.pi = 3
json.dumps = builtins.print = builtins.len = None
sys.modules['decimal'] = sys
sys.path[:] = ['/left/behind']
random.seed(1)
random.Random = None
builtins.left = 'behind'
sys.setrecursionlimit(50)
ctypes.memset(id(257) + 24, 1, 4)
gc.disable()
"""
MEET = """
import decimal, os, sys
[math.pi, json.dumps(len('ab')), decimal.Decimal(2).sqrt() > 1, os.environ.get('LEFT'),
 '/left/behind' in sys.path, hasattr(__builtins__, 'left'), sys.getrecursionlimit() > 500,
 os.path.exists('/tmp/left-behind'), os.path.exists('/dev/shm/left-behind')]
"""


def test_a_program_leaves_nothing_behind(policy):
    with guests(policy) as started:
        expected = started.run_source(MEET).output
        first = started.run_source("random.random()").output
        littered = [started.run_source(NUMBERS + LITTER) for _ in range(3)]
        prepared = policy.limits.prepared_guests
        later = [started.run_source(MEET).output for _ in range(prepared + 2)]
        drawn = {started.run_source("random.random()").output for _ in range(prepared + 2)}
    assert [outcome.output for outcome in littered] == ["\n"] * 3
    assert expected.startswith("[3.14159")
    assert later == [expected] * (prepared + 2)
    assert len(drawn - {first}) == prepared + 2


def test_without_the_layers_it_would_leave_files_and_memory_behind(policy, tmp_path):
    source = (
        "import ctypes, os\n"
        f"open({str(tmp_path / 'left')!r}, 'w').close()\n"
        "n = ctypes.CDLL(None).shmget(0, 4096, 0o1600)\n"
        "ctypes.CDLL(None).shmctl(n, 0, 0)\n"  # IPC_RMID
        "n >= 0"
    )
    with guests(policy, *WITHOUT) as started:
        assert started.run_source(source).output == "True\n"
    assert (tmp_path / "left").exists()


def test_no_memory_is_shared_between_programs(policy):
    """What one guest writes must be its own copy: the zygote maps nothing shared and writable."""
    with guests(policy) as started:
        maps = Path(f"/proc/{started.pid}/maps").read_text().splitlines()
    kinds = [line.split()[1] for line in maps]
    assert "rw-p" in kinds
    assert [line for line, kind in zip(maps, kinds, strict=True) if kind.startswith("rw-s")] == []


def test_a_program_that_takes_all_it_may_does_not_starve_another(policy):
    greedy = (
        "import os\nheld = []\n"
        "try:\n  while True: held.append(os.dup(1))\nexcept OSError: pass\n"
        "try:\n  while True: held.append(bytearray(1 << 20))\nexcept MemoryError: pass\n"
        "while True: pass"
    )
    with guests(policy) as started:
        kinds: list[str] = []
        threads = [
            threading.Thread(target=lambda: kinds.append(started.run_source(greedy).kind))
            for _ in range(min(3, policy.limits.concurrent_guests - 1))
        ]
        for thread in threads:
            thread.start()
        outcome = started.run_source(WORK)
        for thread in threads:
            thread.join()
    assert outcome.output == ANSWER
    assert set(kinds) <= {"cpu_limit", "memory_limit", "wall_limit"}


@pytest.mark.skipif(os.geteuid() != 0, reason="a plain user gives all guests its own uid")
def test_programs_at_once_and_in_turn_have_different_uids(policy):
    source = "import os, time\ntime.sleep(0.2)\nos.getuid()"
    with guests(policy) as started, ThreadPoolExecutor(4) as pool:
        at_once = [outcome.output for outcome in pool.map(started.run_source, [source] * 4)]
        in_turn = [started.run_source("import os\nos.getuid()").output for _ in range(2)]
    assert len({*at_once, *in_turn}) == 6


def test_however_many_uids_there_are_a_program_has_its_memory(policy):
    many = replace(policy, identity=replace(policy.identity, first_uid=200_000, uid_count=100_000))
    with guests(many) as started:
        assert started.run_source("len([0] * 20_000_000)").output == "20000000\n"
