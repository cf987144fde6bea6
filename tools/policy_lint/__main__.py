"""`python -m tools.policy_lint`, which tools/policy-lint runs."""

import signal
import sys

from tools.policy_lint.main import main

if __name__ == "__main__":
    # An interrupt or a reader that has gone ends the command, as it ends others, without a word.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    for stream in filter(None, (sys.stdout, sys.stderr)):  # None where it is closed
        stream.reconfigure(errors="backslashreplace")
    sys.exit(main())
