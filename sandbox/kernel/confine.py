"""Drops privileges irreversibly before the guest reads a program.

The zygote prepares the steps, and the freshly forked guest applies them; `enter_namespaces()` runs
once in the zygote, so that it costs a guest nothing. Everything here fails closed: a layer that
cannot be installed raises LayerError, and the guest ends without having read a program.
"""

from __future__ import annotations

import ctypes
import functools
import os
import resource
import signal
import struct
from _socket import sethostname

from sandbox.kernel import landlock
from sandbox.kernel.libc import call, libc, syscall

TYPE_CHECKING = False  # as in typing
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    # A layer's name, and a call that installs it: it raises OSError or returns -1 if it cannot.
    Step = tuple[str, Callable[..., object], tuple[object, ...]]
    Rlimits = tuple[tuple[int, int], ...]
    Ruleset = tuple[int, int] | None

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 1, 4, 38  # prctl(2)
_CAPABILITY_VERSION_3 = 0x20080522  # capget(2)

_CLONE_NEWNS, _CLONE_NEWUTS, _CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000  # unshare(2)
_CLONE_NEWUSER, _CLONE_NEWPID, _CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
_MS_BIND, _MS_REC, _MS_PRIVATE, _MNT_DETACH = 4096, 16384, 1 << 18, 2  # mount(2), umount2(2)
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_MOUNT_ATTR_RDONLY, _MOUNT_ATTR_NOSUID, _MOUNT_ATTR_NODEV = 1, 2, 4  # mount_setattr(2)
_SYS_MOUNT_SETATTR = 442
_SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_SYS_SECCOMP = {"x86_64": 317, "aarch64": 277}
_SECCOMP_SET_MODE_FILTER = 1  # seccomp(2)

_NO_CAPABILITIES = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0), (ctypes.c_uint32 * 6)()


class LayerError(Exception):
    """A layer could not be installed: which one, and the kernel's reason."""

    def __init__(self, layer: str, reason: object) -> None:
        super().__init__(f"{layer}: {reason}")
        self.layer = layer
        self.reason = str(reason)


def prepare(
    rlimits: Rlimits, uid: int | None, ruleset: Ruleset, program: bytes | None
) -> tuple[Step, ...]:
    """Return what leaves a process no right but to compute and to use descriptors 0 to 3.

    `apply` does it; a guest that makes it itself costs twice as much. `rlimits` are (resource,
    limit) pairs; `uid` is user and group at once; `ruleset` is a Landlock descriptor with its ABI
    version; `program` is a packed seccomp filter. None leaves a layer out: where the platform has
    none, or in a test.

    Order: descriptors, session, rlimits, ids, capabilities, parent-death signal (a change of uid
    clears it, prctl(2)), no_new_privs, Landlock, and seccomp last, as it denies what the others
    need.
    """
    ids: tuple[Step, ...] = ()
    if uid is not None:
        ids = (
            ("uid", libc.setgroups, (0, None)),
            ("uid", libc.setresgid, (uid, uid, uid)),
            ("uid", libc.setresuid, (uid, uid, uid)),
        )
    return (*_before_ids(rlimits, ruleset), *ids, *_after_ids(ruleset, program))


# One copy for all guests: a fork copies an entry for each page of memory.
@functools.cache
def _before_ids(rlimits: Rlimits, ruleset: Ruleset) -> tuple[Step, ...]:
    steps: list[Step] = []
    if ruleset is not None and ruleset[0] != 4:
        steps.append(("descriptors", os.dup2, (ruleset[0], 4, False)))
    steps.append(("descriptors", os.closerange, (4 if ruleset is None else 5, 1 << 20)))
    steps.append(("session", libc.setsid, ()))
    for which, limit in rlimits:
        # SIGXCPU at the soft limit; SIGKILL follows if that is ignored.
        hard = limit + 1 if which == resource.RLIMIT_CPU else limit
        steps.append(("rlimits", libc.setrlimit, (which, struct.pack("@LL", limit, hard))))
    return tuple(steps)


@functools.cache
def _after_ids(ruleset: Ruleset, program: bytes | None) -> tuple[Step, ...]:
    zero = ctypes.c_ulong(0)
    steps: list[Step] = [("capabilities", libc.capset, _NO_CAPABILITIES)]
    for layer, option, value in (
        ("parent-death signal", _PR_SET_PDEATHSIG, signal.SIGKILL),
        ("dumpable", _PR_SET_DUMPABLE, 0),
        ("no_new_privs", _PR_SET_NO_NEW_PRIVS, 1),
    ):
        steps.append((layer, libc.prctl, (option, ctypes.c_ulong(value), zero, zero, zero)))
    if ruleset is not None:
        steps.append(("landlock", *landlock.restriction(4, ruleset[1])))
        steps.append(("descriptors", os.close, (4,)))
    if program is not None:
        steps.append(("seccomp", *_installation(program)))
    return tuple(steps)


def apply(steps: Iterable[Step]) -> None:
    """Apply prepared steps to the calling process, irreversibly. Raises LayerError if one fails.

    It touches as few objects as it can: each page of memory that a guest touches is copied.
    """
    for layer, step, arguments in steps:
        try:
            failed = step(*arguments) == -1
        except (OSError, ValueError) as error:
            raise LayerError(layer, error) from error
        if failed:
            raise LayerError(layer, os.strerror(ctypes.get_errno()))


def _installation(program: bytes) -> tuple[Callable[..., int], tuple[object, ...]]:
    instructions = ctypes.create_string_buffer(program, len(program))
    # struct sock_fprog: unsigned short len, padding, struct sock_filter *filter.
    header = struct.pack("@HP", len(program) // 8, ctypes.addressof(instructions))
    number = ctypes.c_long(_SYS_SECCOMP[os.uname().machine])
    # The call takes three arguments; the fourth keeps the instructions in memory.
    return libc.syscall, (number, _SECCOMP_SET_MODE_FILTER, 0, header, instructions)


def enter_namespaces() -> None:
    """Move the calling, single-threaded process and its future children out of sight of the host.

    New network (with no interface up), IPC, UTS, PID and mount namespaces; `hide_files` follows. As
    a plain user this goes through a user namespace. The caller keeps its own PID; its children are
    numbered in the new namespace, where an idle first process keeps it alive, and where all die
    with that one. It keeps the memory that the caller has now.
    Raises LayerError; the process may then be half moved and must not go on.
    """
    try:
        _unshare()
        _start_first_process()
    except (OSError, ValueError) as error:
        raise LayerError("namespaces", error) from error


def hide_files(readable_paths: Iterable[str]) -> None:
    """Make the root of the new namespaces a read-only view of `readable_paths`, without /proc."""
    try:
        _change_root(readable_paths)
    except (OSError, ValueError) as error:
        raise LayerError("namespaces", error) from error


def _unshare() -> None:
    flags = _CLONE_NEWNS | _CLONE_NEWUTS | _CLONE_NEWIPC | _CLONE_NEWPID | _CLONE_NEWNET
    uid, gid = os.geteuid(), os.getegid()
    call(libc.unshare, flags if uid == 0 else flags | _CLONE_NEWUSER)
    if uid != 0:
        for name, text in (
            ("setgroups", "deny"),  # user_namespaces(7): demanded before gid_map
            ("uid_map", f"{uid} {uid} 1"),
            ("gid_map", f"{gid} {gid} 1"),
        ):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)
    sethostname("guest")


def _start_first_process() -> None:
    """Fork the namespace's process 1: idle, and gone as soon as the zygote is."""
    ours, theirs = os.pipe()
    if os.fork() == 0:
        try:
            call(libc.prctl, _PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL))
            os.close(ours)  # with its only other reader, the zygote, gone already, this fails:
            os.write(theirs, b"1")
            os.closerange(0, 1 << 20)
            while True:
                signal.pause()
        finally:
            os._exit(1)
    os.close(theirs)
    if os.read(ours, 1) != b"1":
        raise OSError("the first process of the namespace did not start")
    os.close(ours)


def _change_root(readable_paths: Iterable[str]) -> None:
    root = b"/proc"  # any directory that is always there and holds nothing a guest may read
    _mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None)
    names = {name for path in readable_paths for name in (path, os.path.realpath(path))}
    _mount(b"tmpfs", root, b"tmpfs", 0, b"size=1m,mode=755")
    shown: list[str] = []
    for name in sorted(filter(os.path.exists, names)):
        if any(name.startswith(f"{folder}/") for folder in shown):
            continue
        target = root + os.fsencode(name)
        if os.path.isdir(name):
            os.makedirs(target, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o444))
        _mount(os.fsencode(name), target, None, _MS_BIND | _MS_REC, None)
        shown.append(name)
    os.chdir(root)
    syscall(_SYS_PIVOT_ROOT[os.uname().machine], b".", b".")
    call(libc.umount2, b".", _MNT_DETACH)
    os.chdir("/")
    set_attributes = _MOUNT_ATTR_RDONLY | _MOUNT_ATTR_NOSUID | _MOUNT_ATTR_NODEV
    change = (ctypes.c_uint64 * 4)(set_attributes, 0, 0, 0), ctypes.c_size_t(32)
    folder, flags = ctypes.c_int(_AT_FDCWD), ctypes.c_uint(_AT_RECURSIVE)
    syscall(_SYS_MOUNT_SETATTR, folder, b"/", flags, *change)


def _mount(
    source: bytes | None, target: bytes, kind: bytes | None, flags: int, data: bytes | None
) -> None:
    call(libc.mount, source, target, kind, ctypes.c_ulong(flags), data)
