"""The kernel's layers of a guest: seccomp filter, Landlock, namespaces, and their order."""
