"""The programs of prelude and warm_up, each tried in a guest with the limits of any other.

Where this interpreter lacks a library that the policy has, they are not tried.

warm-up-refused (error): A prelude or warm-up program breaks the rules of this file
    It runs in the zygote, and so it must do nothing that others may not; the bot refuses to serve.
    Example: warm_up with import os
    Cure: Correct the program.

warm-up-fails (error): A prelude or warm-up program does not come to its end
    It raises, loops or takes more memory than a program may, so the bot does not start.
    Example: warm_up: [1/0]
    Cure: Correct the program, or delete it.
"""

from sandbox.check.checker import check as violations
from sandbox.policy.document import PROGRAMS
from sandbox.policy.libraries import libraries
from tools.policy_lint.guests import reason
from tools.policy_lint.modules import exists
from tools.policy_lint.subject import Findings, Policy, Subject


def check(subject: Subject, policy: Policy) -> Findings:
    """Programs that the policy refuses, and programs that fail."""
    programs = [one for field in PROGRAMS for one in subject.document.strings(field)]
    missing = [name for name in libraries(policy) if not exists(name)]
    refused = {source: violations(source, policy) for _, source in programs}
    sound = [source for _, source in programs if not refused[source]]
    outcomes = subject.guests.rehearse(sound) if sound and not missing else {}
    for at, source in programs:
        cure = "correct or delete it"
        if refused[source]:
            first = refused[source][0]
            rule, message = "warm-up-refused", f"line {first.line} of this program: {first.message}"
        elif missing:
            rule = "not-tried"
            message = f"this program was not tried: this interpreter has no module {missing[0]}"
            cure = "run the lint where the libraries are: MATHS=1 tools/policy-lint FILE"
        elif outcomes[source].kind == "unavailable":
            rule, message = "not-tried", f"this program was not tried: {reason(outcomes[source])}"
            cure = "run the lint where the bot can run"
        elif outcomes[source].kind == "output_limit":  # in the zygote nothing bounds what it prints
            rule, message = "not-tried", "its end was not tried, as it prints more than others may"
            cure = "let it print less"
        elif outcomes[source].kind != "ok":
            rule, message = "warm-up-fails", f"this program fails: {reason(outcomes[source])}"
        else:
            continue
        yield subject.finding(rule, at, message, cure, source)
