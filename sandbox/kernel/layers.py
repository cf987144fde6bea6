"""The layers that keep a guest in: their names in policies, health and log, and their cures."""

# Without these three there is no boundary to speak of, whatever else holds.
ESSENTIAL = ("no_new_privs", "rlimits", "seccomp")
# One of these at least must keep programs from the secrets.
KEEPS_SECRETS = "uid or landlock"

_ROOT = "start as root with the capabilities SETUID, SETGID and KILL"
_LANDLOCK = "use a kernel of 5.13 or newer with landlock in its `lsm=` list"
# What to do where a layer cannot be installed.
CURES = {
    "uid": _ROOT,
    "landlock": _LANDLOCK,
    KEEPS_SECRETS: f"{_ROOT}, or {_LANDLOCK}",
    "namespaces": "start as root with the capability SYS_ADMIN, or allow unprivileged user "
    "namespaces, or take namespaces out of required_layers",
    "cgroup": "start as root where /sys/fs/cgroup is writable and has the memory controller",
    "seccomp": "use a kernel with CONFIG_SECCOMP_FILTER",
    "no_new_privs": "use a kernel of 3.5 or newer",
    "rlimits": "lower the value in policy.yaml below the hard limit that this service has",
}
