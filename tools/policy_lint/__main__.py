"""`python -m tools.policy_lint`, which tools/policy-lint runs."""

import sys

from tools.policy_lint.main import main

if __name__ == "__main__":
    sys.exit(main())
