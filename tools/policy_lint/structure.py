"""Mistakes for which the loader refuses the file: the rules of sandbox.policy and its document."""

from collections.abc import Iterator

from tools.policy_lint.finding import Finding, Rule
from tools.policy_lint.subject import Subject

_REFUSED = "The loader refuses the whole file: a running bot keeps its last good policy"

# id: summary, why, example, cure
_RULES = {
    "file": (
        "The file cannot be read as text",
        f"{_REFUSED}. It is missing, empty, too large, no regular file, or not UTF-8.",
        "a policy.yaml saved as UTF-16",
        "Save the file as UTF-8 without a byte order mark, under the name that was given.",
    ),
    "yaml-syntax": (
        "The file is not YAML",
        f"{_REFUSED}. Some of these YAML itself would take: a line that is indented too deep "
        "silently becomes part of the entry above it.",
        "- @network-io",
        "Align the line with its neighbours; put a value with special characters in single quotes.",
    ),
    "yaml-feature": (
        "An anchor, alias, tag, merge key or second document",
        f"{_REFUSED}. These let a file mean something else than its lines say to a reviewer.",
        "limits: *defaults",
        "Write the value itself.",
    ),
    "yaml-value": (
        "A value that YAML turned into something else",
        f"{_REFUSED}. In YAML 1.1 `on` is true, `010` is 8, `1:30` is 90, `3.10` is 3.1 and "
        "nothing at all is null; editors that read YAML 1.2 show it otherwise.",
        "cpu_seconds: 010",
        "Write whole numbers in decimal, and put names that look like something else in quotes.",
    ),
    "duplicate-key": (
        "A field stands twice",
        f"{_REFUSED}. YAML keeps the last one only, so that the first would be lost in silence.",
        "a second `dangerous_names:` at the end of the file",
        "Delete one of the two, or put their entries together.",
    ),
    "duplicate-entry": (
        "An entry stands twice in one list",
        f"{_REFUSED}. Whoever deletes one of the two believes that it is gone.",
        "- eval, and - eval again",
        "Delete one of the two.",
    ),
    "unknown-key": (
        "A field that no policy has",
        f"{_REFUSED}. A misspelt limit is no limit.",
        "cpu_second: 2",
        "Write the name as in sandbox/policy/schema.json, under the heading that it belongs to.",
    ),
    "missing-key": (
        "A field is missing",
        f"{_REFUSED}. No field has a default, so that the file says all that is in force.",
        "rlimits without cpu_seconds",
        "Add the field.",
    ),
    "wrong-type": (
        "A value of another kind than the field takes",
        f"{_REFUSED}.",
        "cpu_seconds: '2'",
        "Write a number without quotes, a list as lines that begin with `- `, a name as text.",
    ),
    "unknown-version": (
        "A version of the format that this program does not know",
        f"{_REFUSED}, for the fields of another version may mean something else.",
        "version: 2",
        "Write `version: 1`, or use the program that belongs to the file.",
    ),
    "out-of-range": (
        "A number that the field cannot take",
        f"{_REFUSED}.",
        "cpu_seconds: 0",
        "Write a number within the bounds that the message names.",
    ),
    "bad-name": (
        "Text that cannot be what the field holds",
        f"{_REFUSED}. It could never match anything: two names on one line, say.",
        "- json, math",
        "Write one name an entry, as the message describes it.",
    ),
    "unknown-layer": (
        "A layer that does not exist",
        f"{_REFUSED}. A misspelt layer would not be required.",
        "- secomp",
        "Write one of cgroup, landlock, namespaces, no_new_privs, rlimits, seccomp, uid, "
        "uid or landlock.",
    ),
    "essential-layer": (
        "A layer without which nothing holds a program is not required",
        f"{_REFUSED}. Without rlimits, no_new_privs and seccomp there is no boundary.",
        "required_layers without seccomp",
        "Add the layer to required_layers.",
    ),
    "unknown-syscall": (
        "A system call, group or condition that nobody knows",
        f"{_REFUSED}. A misspelt call would not be denied.",
        "- ptrce",
        "Write the name as in syscalls.py (groups) or seccomp.py (conditions) of sandbox/kernel/.",
    ),
    "limits-contradict": (
        "Two limits contradict each other",
        f"{_REFUSED}. One of the two could never be reached, or not be kept.",
        "cpu_seconds: 20 with wall_seconds: 8",
        "Change either; the finding at each says to what.",
    ),
    "preloaded-not-allowed": (
        "A preloaded module that allowed_imports does not hold",
        f"{_REFUSED}. A program would reach a module that it may not import.",
        "preloaded: {os: os}",
        "Add the module to allowed_imports, or delete the preloaded name.",
    ),
    "regex-invalid": (
        "A blocked word is no regular expression",
        f"{_REFUSED}. Python could not search for it, or warns that its meaning will change.",
        "- '(passwd'",
        "Close what is open; put a backslash before a character that is meant as itself.",
    ),
    "regex-backspace": (
        "A blocked word holds a control character",
        f"{_REFUSED}. In double quotes YAML turns \\b into a backspace: the word never matches.",
        '- "\\bos\\b"',
        "Put regular expressions in single quotes.",
    ),
}

RULES = {name: Rule(name, "error", *texts) for name, texts in _RULES.items()}


def find(subject: Subject) -> Iterator[Finding]:
    """One finding for each problem that the loader has."""
    for problem in subject.document.problems:
        yield Finding(
            RULES[problem.rule],
            problem.path,
            problem.line,
            problem.column,
            problem.value,
            problem.message,
            problem.cure,
        )
