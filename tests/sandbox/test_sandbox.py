"""Sandbox: what a program's answer is, and that nothing a program does outlives or hurts others."""

import dataclasses
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from sandbox.policy.loader import Policy
from sandbox.sandbox import Outcome, Sandbox, SandboxUnavailable
from tests.performance import processes


def with_limits(policy: Policy, **limits: int) -> Policy:
    return dataclasses.replace(policy, limits=dataclasses.replace(policy.limits, **limits))


@pytest.fixture
def own_sandbox(policy: Policy) -> Iterator[Sandbox]:
    """A sandbox that the test may break."""
    sandbox = Sandbox(with_limits(policy, queue_seconds=300, wall_seconds=60))
    sandbox.start()
    yield sandbox
    sandbox.close()


def zygote_pid(sandbox: Sandbox) -> int:
    assert sandbox._serving is not None
    return sandbox._serving.plain.process.pid


def descendants(pid: int) -> list[int]:
    """Return the living processes below one, by /proc."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
    found = [child for child, parent in parents.items() if parent == pid]
    return found + [grandchild for child in found for grandchild in descendants(child)]


def guests(sandbox: Sandbox) -> list[int]:
    """Return the zygote's children but the first, which keeps its PID namespace alive."""
    children = sorted(descendants(zygote_pid(sandbox)), key=processes.started)
    return children[1:] if sandbox.status()["layers"].get("namespaces") else children


def eventually(condition: object, seconds: float = 5) -> None:
    deadline = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("source", "output"),
    [
        ("2+2", "4\n"),
        ("None", ""),
        ("x = 1", ""),
        ("'it\\'s'", "it's\n"),
        ("print('a')\n'b'", "a\nb\n"),
        ("print('a')", "a\n"),
        ("[print(1)];", "1\n[None]\n"),
        ("import math\nmath.pi", "3.141592653589793\n"),
        ("dt.datetime.strptime('2020', '%Y').year", "2020\n"),
        ("len(str(10**5000))", "5001\n"),
        ("'\\ud83d'", "\\ud83d\n"),
        ("def f(n): return n and f(n - 1)\nf(500)", "0\n"),
        ("class A:\n    x = 1\nA().x", "1\n"),
        ("raise SystemExit", ""),
    ],
)
def test_a_benign_program_is_answered_as_a_console_would(
    sandbox: Sandbox, source: str, output: str
) -> None:
    outcome = sandbox.run(source)
    assert (outcome.kind, outcome.output, outcome.error) == ("ok", output, "")


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("1/0", "ZeroDivisionError: division by zero"),
        ("x = 1\n1/0", "ZeroDivisionError: division by zero (line 2)"),
        ("def f():\n    assert False\n\nf()", "AssertionError (line 2)"),
        ("raise ValueError('a\\nb')", "ValueError: a b"),
        ("raise SystemExit('bye')", "SystemExit: bye"),
        ("class B(BaseException): pass\nraise B('deep')", "B: deep (line 2)"),
    ],
)
def test_an_error_is_one_line_with_its_place(sandbox: Sandbox, source: str, error: str) -> None:
    outcome = sandbox.run(source)
    assert (outcome.kind, outcome.error) == ("error", error)


def test_what_was_printed_before_an_error_is_kept(sandbox: Sandbox) -> None:
    outcome = sandbox.run("print('so far')\n1/0")
    assert (outcome.kind, outcome.output) == ("error", "so far\n")


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("(2+", "syntax_error"),
        ("return 5", "syntax_error"),
        ("import os", "rejected"),
        ("[0]*10**12", "memory_limit"),
        ("while True: print('y')", "output_limit"),
        ("print('x' * 10**6)", "output_limit"),
        ("while True: pass", "cpu_limit"),
    ],
)
def test_each_limit_is_told_apart(sandbox: Sandbox, source: str, kind: str) -> None:
    assert sandbox.run(source).kind == kind


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("x = 1\n  y", "IndentationError: unexpected indent"),  # the parser's
        ("return 5", "SyntaxError: 'return' outside function"),  # the compiler's
    ],
)
def test_a_syntax_error_has_the_name_that_python_gives_it(
    sandbox: Sandbox, source: str, error: str
) -> None:
    assert sandbox.run(source).error == error


def test_output_is_cut_exactly_at_the_limit(sandbox: Sandbox) -> None:
    limit = sandbox.policy.limits.output_bytes
    assert sandbox.run(f"print('x' * {limit - 1})").kind == "ok"
    outcome = sandbox.run(f"print('x' * {limit})")
    assert (outcome.kind, outcome.output) == ("output_limit", "x" * limit)


def test_the_limit_holds_for_one_byte_at_a_time(sandbox: Sandbox) -> None:
    limit = sandbox.policy.limits.output_bytes
    outcome = sandbox.run(f"for _ in range({limit} + 1): print(end='x')")
    assert (outcome.kind, outcome.output) == ("output_limit", "x" * limit)


def test_what_was_printed_until_a_limit_is_kept(sandbox: Sandbox) -> None:
    outcome = sandbox.run("print('begun')\nwhile True: pass")
    assert (outcome.kind, outcome.output) == ("cpu_limit", "begun\n")
    assert outcome.cpu_seconds == pytest.approx(sandbox.policy.rlimits.cpu_seconds, abs=1)


def test_a_sleeper_is_ended_at_the_wall_limit(policy: Policy) -> None:
    sandbox = Sandbox(
        dataclasses.replace(
            with_limits(policy, wall_seconds=1),
            rlimits=dataclasses.replace(policy.rlimits, cpu_seconds=1),
        )
    )
    sandbox.start()
    outcome = sandbox.run("print('z')\nimport time\ntime.sleep(60)", unchecked=True)
    assert (outcome.kind, outcome.output) == ("wall_limit", "z\n")
    assert 0.9 < outcome.wall_seconds < 3
    sandbox.close()


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("import ctypes\nctypes.string_at(0)", "SIGSEGV"),
    ],
)
def test_a_crash_is_told_in_one_line(sandbox: Sandbox, source: str, says: str) -> None:
    outcome = sandbox.run(source, unchecked=True)
    assert outcome.kind == "crashed"
    assert says in outcome.error


def test_a_program_that_leaves_by_itself_is_told_by_its_exit_code(sandbox: Sandbox) -> None:
    assert sandbox.run("print(1)\nimport os\nos._exit(0)", unchecked=True).output == "1\n"
    outcome = sandbox.run("import os\nos._exit(7)", unchecked=True)
    assert (outcome.kind, outcome.error) == ("error", "ended with exit code 7")


def test_a_guest_that_lies_in_its_report_is_answered_and_ended(own_sandbox: Sandbox) -> None:
    prepared = own_sandbox.policy.limits.prepared_guests
    outcome = own_sandbox.run("import os\nos.write(3, b'lies')\nwhile True: pass", unchecked=True)
    assert outcome.kind == "error"
    assert outcome.wall_seconds < 1
    eventually(lambda: len(guests(own_sandbox)) <= prepared, seconds=1.5)
    assert own_sandbox.run("2+2").output == "4\n"


@pytest.mark.parametrize("report", ["b''", "b'\\xff' * 100000", "bytes(17) + b'\\n\\n'"])
def test_any_report_gives_an_outcome(sandbox: Sandbox, report: str) -> None:
    outcome = sandbox.run(f"import os\nos.write(3, {report})\nos._exit(0)", unchecked=True)
    assert isinstance(outcome, Outcome)
    assert "\n" not in outcome.error
    assert 0 <= outcome.cpu_seconds < 10


def test_the_import_guard_stops_what_the_checker_would_have(sandbox: Sandbox) -> None:
    """`helpers` is no bypass: both the checker and the guard are there."""
    assert sandbox.run("import os", helpers=True).kind == "rejected"
    assert sandbox.run("nf(1234567.891)", helpers=True).output == "1 234 567.89\n"
    assert sandbox.run("fact(5)", helpers=True).output == "120\n"
    assert sandbox.run("fact(5)").error == "NameError: name 'fact' is not defined"


@pytest.mark.parametrize("text", ["\x00", "\ud800", "é" * 9000, "(" * 16000, "x" * 20000, ""])
def test_run_never_raises(sandbox: Sandbox, text: str) -> None:
    for unchecked in (False, True):
        assert isinstance(sandbox.run(text, unchecked=unchecked), Outcome)


def test_two_hundred_programs_at_once_are_all_answered_rightly(own_sandbox: Sandbox) -> None:
    with ThreadPoolExecutor(200) as pool:
        answers = list(pool.map(own_sandbox.run, ["sum(range(10**6))"] * 200))
    assert {answer.output for answer in answers} == {"499999500000\n"}


def test_a_program_that_finds_no_place_in_time_is_told_so(policy: Policy) -> None:
    sandbox = Sandbox(
        with_limits(
            policy,
            queue_seconds=0,
            wall_seconds=60,
            concurrent_guests=1,
            prepared_guests=1,
            sender_concurrent=1,
        )
    )
    sandbox.start()
    with ThreadPoolExecutor(2) as pool:
        running = pool.submit(sandbox.run, "while True: pass")
        eventually(lambda: sandbox.status()["guests"]["running"] == 1)
        assert sandbox.run("2+2").kind == "busy"
        assert running.result().kind == "cpu_limit"
    assert sandbox.run("2+2").output == "4\n"
    sandbox.close()


def test_slots_are_given_in_the_order_of_arrival(policy: Policy) -> None:
    """However busy one user is, another's program waits for those that came before, no longer."""
    one = with_limits(policy, concurrent_guests=1, prepared_guests=1, sender_concurrent=1)
    sandbox = Sandbox(one)
    sandbox.start()
    ended: list[str] = []
    stop = threading.Event()

    def ask(name: str) -> None:
        while not stop.is_set():
            assert sandbox.run("sum(range(10**6))").kind == "ok"
            ended.append(name)

    with ThreadPoolExecutor(3) as pool:
        asked = [pool.submit(ask, name) for name in "abc"]
        eventually(lambda: len(ended) > 30, seconds=60)
        stop.set()
        for each in asked:
            each.result()
    sandbox.close()
    assert min(ended[:30].count(name) for name in "abc") >= 7


def test_who_would_wait_too_long_is_told_so_at_once(policy: Policy) -> None:
    """Each program takes a second of the only slot, so the last in the queue are hopeless."""
    brief = dataclasses.replace(policy, rlimits=dataclasses.replace(policy.rlimits, cpu_seconds=1))
    brief = with_limits(
        brief, queue_seconds=2, concurrent_guests=1, prepared_guests=1, sender_concurrent=1
    )
    with closing(Sandbox(brief)) as sandbox, ThreadPoolExecutor(12) as pool:
        sandbox.start()
        for _ in range(3):
            sandbox.run("while True: pass")  # what the pace is learnt from
        outcomes = [pool.submit(sandbox.run, "while True: pass") for _ in range(12)]
        time.sleep(1)
        refused = [each for each in outcomes if each.done() and each.result().kind == "busy"]
        assert len(refused) >= 2


def test_status_counts_the_guests_that_wait_and_those_that_run(own_sandbox: Sandbox) -> None:
    def counts() -> tuple[int, int]:
        now = own_sandbox.status()["guests"]
        return now["prepared"], now["running"]

    prepared = own_sandbox.policy.limits.prepared_guests
    eventually(lambda: counts() == (prepared, 0))
    with ThreadPoolExecutor(2) as pool:
        programs = [
            pool.submit(own_sandbox.run, "for i in range(2 * 10**7): pass") for _ in range(2)
        ]
        eventually(lambda: (counts(), len(guests(own_sandbox))) == ((prepared, 2), prepared + 2))
        for program in programs:
            program.result()
    os.kill(zygote_pid(own_sandbox), signal.SIGSTOP)
    own_sandbox.run("2+2")
    assert counts() == (prepared - 1, 0)
    os.kill(zygote_pid(own_sandbox), signal.SIGKILL)
    eventually(lambda: counts() == (0, 0))


def test_a_killed_zygote_costs_no_answer(own_sandbox: Sandbox) -> None:
    with ThreadPoolExecutor(2) as pool:
        running = pool.submit(own_sandbox.run, "s = 0\nfor i in range(10**6): s += i\ns")
        eventually(lambda: own_sandbox.status()["guests"]["running"] == 1)
        os.kill(zygote_pid(own_sandbox), signal.SIGKILL)
        assert running.result().output == "499999500000\n"
    assert own_sandbox.status()["zygote"]["restarts"] == 1


def test_guests_die_with_their_zygote(own_sandbox: Sandbox) -> None:
    pid = zygote_pid(own_sandbox)
    eventually(lambda: len(descendants(pid)) >= own_sandbox.policy.limits.prepared_guests)
    below = descendants(pid)
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not any(Path(f"/proc/{child}").exists() for child in below))


def test_killed_idle_guests_are_passed_over(own_sandbox: Sandbox) -> None:
    most = own_sandbox.policy.limits.prepared_guests
    eventually(lambda: own_sandbox.status()["guests"]["prepared"] == most)
    eventually(lambda: len(guests(own_sandbox)) == most)  # the self-test's have ended
    killed = guests(own_sandbox)
    for child in killed:
        os.kill(child, signal.SIGKILL)
    eventually(lambda: not any(Path(f"/proc/{child}").exists() for child in killed))
    for _ in range(most + 1):
        assert own_sandbox.run("2+2").output == "4\n"


def test_nothing_is_left_open_or_running(own_sandbox: Sandbox) -> None:
    def held() -> tuple[int, int]:
        return len(os.listdir("/proc/self/fd")), len(descendants(os.getpid()))

    for source in ("1", "1/0", "while True: print(1)", "import os\nos._exit(3)"):
        own_sandbox.run(source, unchecked=True)
    time.sleep(0.3)
    before = held()
    with ThreadPoolExecutor(8) as pool:
        for source in ("1", "1/0", "print('x' * 10**6)", "import os\nos._exit(3)"):
            list(pool.map(lambda text: own_sandbox.run(text, unchecked=True), [source] * 40))
    eventually(lambda: held() <= before)


def test_a_closed_sandbox_answers_that_it_is_unavailable_and_leaves_no_process(
    policy: Policy,
) -> None:
    sandbox = Sandbox(policy)
    assert sandbox.run("1").kind == "unavailable"
    sandbox.start()
    its = [zygote_pid(sandbox), *descendants(zygote_pid(sandbox))]
    sandbox.close()
    assert sandbox.run("1").kind == "unavailable"
    eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in its))


def test_a_reload_loses_no_program_and_mixes_no_policies(own_sandbox: Sandbox) -> None:
    """Every answer is by the old policy or by the new one, checker and guest alike."""
    narrow = own_sandbox.policy
    wide = dataclasses.replace(narrow, allowed_imports={**narrow.allowed_imports, "html": None})
    stop = threading.Event()

    def ask() -> set[tuple[str, str]]:
        seen = set()
        while not stop.is_set():
            outcome = own_sandbox.run("import html\nhtml.escape('x')")
            seen.add((outcome.kind, outcome.output))
        return seen

    with ThreadPoolExecutor(3) as pool:
        asked = [pool.submit(ask) for _ in range(3)]
        for policy in (wide, narrow) * 4:
            own_sandbox.reload(policy)
            time.sleep(0.05)
        stop.set()
        seen = set().union(*(answer.result() for answer in asked))
    assert seen == {("rejected", ""), ("ok", "x\n")}


def test_the_zygote_is_renewed_after_its_share_of_guests(policy: Policy) -> None:
    sandbox = Sandbox(with_limits(policy, zygote_guests=3))
    sandbox.start()
    first = zygote_pid(sandbox)
    for _ in range(4):
        assert sandbox.run("2+2").output == "4\n"
    eventually(lambda: zygote_pid(sandbox) != first)
    assert sandbox.run("2+2").output == "4\n"
    eventually(lambda: not Path(f"/proc/{first}").exists())
    sandbox.close()


def test_no_two_programs_draw_the_same_random_numbers(sandbox: Sandbox) -> None:
    source = "random.random(), random.Random().random(), random.choice(range(10**9))"
    drawn = [sandbox.run(source).output for _ in range(20)]
    assert len(set(drawn)) == len(drawn)


def test_a_program_finds_nothing_of_the_project(sandbox: Sandbox) -> None:
    source = """
import sys, os
print([name for name in sys.modules if name.startswith(('yaml', 'jsonschema', 'falcon'))])
print([path for path in sys.path if os.path.exists(os.path.join(path, 'policy.yaml'))])
print(sorted(os.environ))
"""
    environment = ["HOME", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "PATH"]
    environment += ["LD_BIND_NOW", "PYTHONBREAKPOINT", "SYMPY_CACHE_SIZE", "TZ"]
    printed = sandbox.run(source, unchecked=True).output.splitlines()
    assert printed[:2] == ["[]", "[]"]
    assert set(eval(printed[2])) <= {*environment, "LC_CTYPE"}


def test_a_neighbour_is_not_hurt_by_one_that_takes_all_it_can(sandbox: Sandbox) -> None:
    with ThreadPoolExecutor(3) as pool:
        greedy = pool.submit(sandbox.run, "999999**99999999")
        vast = pool.submit(sandbox.run, "[0]*10**12")
        assert sandbox.run("sum(range(10**5))").output == "4999950000\n"
        assert vast.result().kind == "memory_limit"
        assert greedy.result().kind in ("cpu_limit", "memory_limit", "wall_limit")  # if busy


def test_guests_find_warm_what_a_warm_up_program_has_computed(policy: Policy) -> None:
    program = "import functools\n@functools.cache\ndef f(): ...\nx = 5\nrandom.Random.warm = x + 1"
    sandbox = Sandbox(dataclasses.replace(policy, warm_up=(program,)))
    sandbox.start()
    try:
        assert [sandbox.run("random.Random.warm").output for _ in range(2)] == ["6\n"] * 2
        assert sandbox.run("x").error == "NameError: name 'x' is not defined"
    finally:
        sandbox.close()


def test_two_guests_draw_other_numbers_from_what_a_warm_up_program_made(policy: Policy) -> None:
    program = "random.Random.dice = random.Random(1)\nrandom.Random.dice.random()"
    sandbox = Sandbox(dataclasses.replace(policy, warm_up=(program,)))
    sandbox.start()
    try:
        assert len({sandbox.run("random.Random.dice.random()").output for _ in range(5)}) == 5
    finally:
        sandbox.close()


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("import os", "breaks its rules (`os` may not be imported"),
        ("1 +", "breaks its rules (SyntaxError: invalid syntax"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
    ],
)
def test_a_warm_up_program_that_cannot_run_is_refused(
    policy: Policy, program: str, reason: str
) -> None:
    sandbox = Sandbox(dataclasses.replace(policy, warm_up=("2+2", program)))
    with pytest.raises(SandboxUnavailable) as caught:
        sandbox.start()
    assert reason in str(caught.value)
    assert "; cure: " in str(caught.value)


def test_a_program_cannot_have_itself_run_twice(sandbox: Sandbox) -> None:
    """Whatever a program says of its end, only the kernel's word has it repeated."""
    before = sandbox.status()["guests"]["served"]
    name = "was ended by the system, which ran short of memory"
    assert sandbox.run(f"raise type({name!r}, (Exception,), {{}})").kind == "error"
    for verdict in range(8):
        report = bytes([verdict]) + bytes(16) + name.encode()
        sandbox.run(f"import os\nos.write(3, {report!r})\nos._exit(0)", unchecked=True)
    assert sandbox.status()["guests"]["served"] == before + 9


def test_death_by_any_signal_is_an_outcome(policy: Policy) -> None:
    sandbox = Sandbox(with_limits(policy, prepared_guests=1))
    sandbox.start()
    try:
        for number in (6, 11, 15, 31, 34, 40, 64):  # not 1, which nohup(1) has ignored
            eventually(lambda: sandbox.status()["guests"]["prepared"] == 1)
            eventually(lambda: len(guests(sandbox)) == 1)  # those before have ended
            [guest] = guests(sandbox)  # the one that will run
            with ThreadPoolExecutor(1) as pool:
                running = pool.submit(sandbox.run, "import time\ntime.sleep(60)", unchecked=True)
                eventually(lambda: len(guests(sandbox)) == 2)  # the next waits, so that it runs
                os.kill(guest, number)
                assert running.result().kind == "crashed", number
    finally:
        sandbox.close()


def test_descriptor_2_leads_nowhere(sandbox: Sandbox) -> None:
    source = "import os\nos.write(2, b'\\5' + b'x' * 100000)\nprint(6 * 7)"
    assert sandbox.run(source, unchecked=True).output == "42\n"


def test_run_gives_an_outcome_where_the_sandbox_itself_fails(
    own_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ValueError("40 is not a valid Signals")

    monkeypatch.setattr("sandbox.fork_server.zygote_process.outcome_of", fail)
    outcome = own_sandbox.run("2+2")
    assert (outcome.kind, outcome.error) == ("crashed", "the sandbox failed: ValueError")


def test_an_escaped_program_finds_nothing_of_other_programs(own_sandbox: Sandbox) -> None:
    source = """
import gc, sys
zygote = sys.modules['sandbox.fork_server.zygote']._zygote
held = [o for o in gc.get_objects() if type(o).__name__ == '_Child']
print(held, zygote.children, zygote.by_descriptor,
      zygote.next_number, zygote.prepared, zygote.running)
"""
    with ThreadPoolExecutor(2) as pool:
        running = pool.submit(own_sandbox.run, "while True: pass")
        eventually(lambda: own_sandbox.status()["guests"]["running"] == 1)
        outcome = own_sandbox.run(source, unchecked=True)
        running.result()
    assert (outcome.error, outcome.output) == ("", "[] {} {} 0 0 0\n")
