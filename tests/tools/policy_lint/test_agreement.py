"""What lint passes the bot serves, for edits that nobody has thought of: EXAMPLES=500 for more."""

import os
import re
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sandbox.policy.loader import schema
from sandbox.sandbox import Sandbox, SandboxUnavailable
from tests.tools.policy_lint.edits import POLICY, subject
from tools.policy_lint.lint import lint
from tools.policy_lint.rules import rules

EXAMPLES = int(os.environ.get("EXAMPLES", "4"))
FIELDS: dict[str, Any] = schema()["properties"]
ENTRIES = {
    "allowed_imports": "html csv os.path nosuch sqlite3 referencing tkinter math: json.tool on",
    "dangerous_names": "str evl super print Decimal math x",
    "dangerous_attrs": "now append f_bakc sqrt string.digits sys",
    "allowed_dunders": "__del__ __inti__ __getattr__ __self__ __aiter__",
    "blocked_words": r"'\bx\b' '(a+)+;' '.*' '\bsocket\.socket\b' '[' '\\bos\\.' 'z{3}'",
    "required_layers": "uid landlock namespaces cgroup secomp",
    "readable_paths": "/etc /usr/lib /usr/share/nosuch /opt relative @python3",
    "denied_syscalls": "mmap fcntl openat getpid close futex brk ptrce read @nosuch ioctl(unsafe)"
    " sched_yield exit_group getrandom madvise clock_gettime prlimit64 write",
    "warm_up": "2+2 1/0 [0]*10**10 open('x')",
}


def numbers(group: str) -> st.SearchStrategy[str]:
    """The policy with one number of a group changed, within its bounds and beyond."""
    fields = [name for name in FIELDS[group].get("properties", {}) if f"  {name}: " in POLICY]

    def edit(name: str) -> st.SearchStrategy[str]:
        about = FIELDS[group]["properties"][name]
        [now] = re.findall(rf"(?m)^  {name}: (\d+)", POLICY)
        near = st.integers(int(now) // 2, int(now) * 2 + 2)
        values = near | st.integers(about["minimum"] - 1, min(about["maximum"] + 1, 70_000))
        return values.map(
            lambda value: re.sub(rf"(?m)^  {name}: \d+", f"  {name}: {value}", POLICY)
        )

    return st.sampled_from(fields or ["wall_seconds"]).flatmap(edit)


def additions(field: str) -> st.SearchStrategy[str]:
    entries = st.sampled_from(ENTRIES[field].split(" "))
    if field == "warm_up":
        return entries.map(lambda one: POLICY.replace("warm_up: []", f'warm_up: ["{one}"]'))
    return entries.map(lambda one: POLICY.replace(f"\n{field}:\n", f"\n{field}:\n  - {one}\n"))


LINES = [line for line in POLICY.splitlines(keepends=True) if re.match("  (- |\\w)", line)]
deletions = st.sampled_from(LINES).map(lambda line: POLICY.replace(line, "", 1))
edits = (
    deletions
    | st.sampled_from(["rlimits", "limits", "identity"]).flatmap(numbers)
    | st.sampled_from(sorted(ENTRIES)).flatmap(additions)
)


def refusal(text: str) -> str:
    """Why the bot would not start under a policy; empty if it does."""
    document = subject(text)
    if document.policy is None:
        return str(document.document.findings[0])
    sandbox = Sandbox(document.policy)
    try:
        sandbox.start()
        outcome = sandbox.run("print(1+1)")
        return "" if outcome.output == "2\n" else f"{outcome}"
    except SandboxUnavailable as error:
        return str(error)
    finally:
        sandbox.close()


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(edits)
def test_what_lint_passes_the_bot_serves(text: str) -> None:
    errors = [one for one in lint(subject(text), rules()) if one.severity == "error"]
    reason = refusal(text)
    changed = next((new for new in text.splitlines() if new not in POLICY.splitlines()), "less")
    assert not reason or errors, (changed, reason)
