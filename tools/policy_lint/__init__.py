"""Finds mistakes and weaknesses in a policy file: see `tools/policy-lint --help`."""


class Unusable(Exception):
    """The command cannot do what it is told; the text says why."""
