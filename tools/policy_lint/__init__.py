"""Finds mistakes and weaknesses in a policy file: see `tools/policy-lint --help`."""
