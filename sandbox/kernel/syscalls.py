"""System calls: numbers for each architecture, and named groups for the policy file.

Numbers: Linux `arch/x86/entry/syscalls/syscall_64.tbl` and `scripts/syscall.tbl`, up to Linux 7.0.
Groups: named as in systemd.exec(5) `SystemCallFilter=` where the meaning is the same.
"""

from collections.abc import Iterable

# Each row starts with the number of its first call; the next calls count up from there.
_X86_64 = """
  0 read write open close stat fstat lstat poll lseek mmap mprotect munmap brk rt_sigaction
 14 rt_sigprocmask rt_sigreturn ioctl pread64 pwrite64 readv writev access pipe select sched_yield
 25 mremap msync mincore madvise shmget shmat shmctl dup dup2 pause nanosleep getitimer alarm
 38 setitimer getpid sendfile socket connect accept sendto recvfrom sendmsg recvmsg shutdown bind
 50 listen getsockname getpeername socketpair setsockopt getsockopt clone fork vfork execve exit
 61 wait4 kill uname semget semop semctl shmdt msgget msgsnd msgrcv msgctl fcntl flock fsync
 75 fdatasync truncate ftruncate getdents getcwd chdir fchdir rename mkdir rmdir creat link unlink
 88 symlink readlink chmod fchmod chown fchown lchown umask gettimeofday getrlimit getrusage
 99 sysinfo times ptrace getuid syslog getgid setuid setgid geteuid getegid setpgid getppid
111 getpgrp setsid setreuid setregid getgroups setgroups setresuid getresuid setresgid getresgid
121 getpgid setfsuid setfsgid getsid capget capset rt_sigpending rt_sigtimedwait rt_sigqueueinfo
130 rt_sigsuspend sigaltstack utime mknod uselib personality ustat statfs fstatfs sysfs
140 getpriority setpriority sched_setparam sched_getparam sched_setscheduler sched_getscheduler
146 sched_get_priority_max sched_get_priority_min sched_rr_get_interval mlock munlock mlockall
152 munlockall vhangup modify_ldt pivot_root _sysctl prctl arch_prctl adjtimex setrlimit chroot
162 sync acct settimeofday mount umount2 swapon swapoff reboot sethostname setdomainname iopl
173 ioperm create_module init_module delete_module get_kernel_syms query_module quotactl
180 nfsservctl getpmsg putpmsg afs_syscall tuxcall security gettid readahead setxattr lsetxattr
190 fsetxattr getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr removexattr
198 lremovexattr fremovexattr tkill time futex sched_setaffinity sched_getaffinity set_thread_area
206 io_setup io_destroy io_getevents io_submit io_cancel get_thread_area lookup_dcookie
213 epoll_create epoll_ctl_old epoll_wait_old remap_file_pages getdents64 set_tid_address
219 restart_syscall semtimedop fadvise64 timer_create timer_settime timer_gettime timer_getoverrun
226 timer_delete clock_settime clock_gettime clock_getres clock_nanosleep exit_group epoll_wait
233 epoll_ctl tgkill utimes vserver mbind set_mempolicy get_mempolicy mq_open mq_unlink
242 mq_timedsend mq_timedreceive mq_notify mq_getsetattr kexec_load waitid add_key request_key
250 keyctl ioprio_set ioprio_get inotify_init inotify_add_watch inotify_rm_watch migrate_pages
257 openat mkdirat mknodat fchownat futimesat newfstatat unlinkat renameat linkat symlinkat
267 readlinkat fchmodat faccessat pselect6 ppoll unshare set_robust_list get_robust_list splice
276 tee sync_file_range vmsplice move_pages utimensat epoll_pwait signalfd timerfd_create eventfd
285 fallocate timerfd_settime timerfd_gettime accept4 signalfd4 eventfd2 epoll_create1 dup3 pipe2
294 inotify_init1 preadv pwritev rt_tgsigqueueinfo perf_event_open recvmmsg fanotify_init
301 fanotify_mark prlimit64 name_to_handle_at open_by_handle_at clock_adjtime syncfs sendmmsg
308 setns getcpu process_vm_readv process_vm_writev kcmp finit_module sched_setattr sched_getattr
316 renameat2 seccomp getrandom memfd_create kexec_file_load bpf execveat userfaultfd membarrier
325 mlock2 copy_file_range preadv2 pwritev2 pkey_mprotect pkey_alloc pkey_free statx io_pgetevents
334 rseq uretprobe uprobe
"""

_AARCH64 = """
  0 io_setup io_destroy io_submit io_cancel io_getevents setxattr lsetxattr fsetxattr getxattr
  9 lgetxattr fgetxattr listxattr llistxattr flistxattr removexattr lremovexattr fremovexattr
 17 getcwd lookup_dcookie eventfd2 epoll_create1 epoll_ctl epoll_pwait dup dup3 fcntl
 26 inotify_init1 inotify_add_watch inotify_rm_watch ioctl ioprio_set ioprio_get flock mknodat
 34 mkdirat unlinkat symlinkat linkat renameat umount2 mount pivot_root nfsservctl statfs fstatfs
 45 truncate ftruncate fallocate faccessat chdir fchdir chroot fchmod fchmodat fchownat fchown
 56 openat close vhangup pipe2 quotactl getdents64 lseek read write readv writev pread64 pwrite64
 69 preadv pwritev sendfile pselect6 ppoll signalfd4 vmsplice splice tee readlinkat newfstatat
 80 fstat sync fsync fdatasync sync_file_range timerfd_create timerfd_settime timerfd_gettime
 88 utimensat acct capget capset personality exit exit_group waitid set_tid_address unshare futex
 99 set_robust_list get_robust_list nanosleep getitimer setitimer kexec_load init_module
106 delete_module timer_create timer_gettime timer_getoverrun timer_settime timer_delete
112 clock_settime clock_gettime clock_getres clock_nanosleep syslog ptrace sched_setparam
119 sched_setscheduler sched_getscheduler sched_getparam sched_setaffinity sched_getaffinity
124 sched_yield sched_get_priority_max sched_get_priority_min sched_rr_get_interval
128 restart_syscall kill tkill tgkill sigaltstack rt_sigsuspend rt_sigaction rt_sigprocmask
136 rt_sigpending rt_sigtimedwait rt_sigqueueinfo rt_sigreturn setpriority getpriority reboot
143 setregid setgid setreuid setuid setresuid getresuid setresgid getresgid setfsuid setfsgid
153 times setpgid getpgid getsid setsid getgroups setgroups uname sethostname setdomainname
163 getrlimit setrlimit getrusage umask prctl getcpu gettimeofday settimeofday adjtimex getpid
173 getppid getuid geteuid getgid getegid gettid sysinfo mq_open mq_unlink mq_timedsend
183 mq_timedreceive mq_notify mq_getsetattr msgget msgctl msgrcv msgsnd semget semctl semtimedop
193 semop shmget shmctl shmat shmdt socket socketpair bind listen accept connect getsockname
205 getpeername sendto recvfrom setsockopt getsockopt shutdown sendmsg recvmsg readahead brk
215 munmap mremap add_key request_key keyctl clone execve mmap fadvise64 swapon swapoff mprotect
227 msync mlock munlock mlockall munlockall mincore madvise remap_file_pages mbind get_mempolicy
237 set_mempolicy migrate_pages move_pages rt_tgsigqueueinfo perf_event_open accept4 recvmmsg
260 wait4 prlimit64 fanotify_init fanotify_mark name_to_handle_at open_by_handle_at clock_adjtime
267 syncfs setns sendmmsg process_vm_readv process_vm_writev kcmp finit_module sched_setattr
275 sched_getattr renameat2 seccomp getrandom memfd_create bpf execveat userfaultfd membarrier
284 mlock2 copy_file_range preadv2 pwritev2 pkey_mprotect pkey_alloc pkey_free statx io_pgetevents
293 rseq kexec_file_load
"""

# Since Linux 5.1 a new call has one number on every architecture.
_COMMON = """
424 pidfd_send_signal io_uring_setup io_uring_enter io_uring_register open_tree move_mount fsopen
431 fsconfig fsmount fspick pidfd_open clone3 close_range openat2 pidfd_getfd faccessat2
440 process_madvise epoll_pwait2 mount_setattr quotactl_fd landlock_create_ruleset
445 landlock_add_rule landlock_restrict_self memfd_secret process_mrelease futex_waitv
450 set_mempolicy_home_node cachestat fchmodat2 map_shadow_stack futex_wake futex_wait
456 futex_requeue statmount listmount lsm_get_self_attr lsm_set_self_attr lsm_list_modules mseal
463 setxattrat getxattrat listxattrat removexattrat open_tree_attr file_getattr file_setattr
470 listns rseq_slice_yield
"""


def _parse(rows: str) -> dict[str, int]:
    table: dict[str, int] = {}
    for row in rows.split("\n"):
        first, *names = row.split() or ["0"]
        table.update((name, number) for number, name in enumerate(names, int(first)))
    return table


TABLES: dict[str, dict[str, int]] = {
    "x86_64": _parse(_X86_64 + _COMMON),
    "aarch64": _parse(_AARCH64 + _COMMON),
}

_GROUPS = {
    # Asynchronous I/O, io_uring included.
    "@aio": """
        io_cancel io_destroy io_getevents io_pgetevents io_setup io_submit io_uring_enter
        io_uring_register io_uring_setup
    """,
    # Change the owner of files.
    "@chown": "chown fchown fchownat lchown",
    # Change the system time.
    "@clock": "adjtimex clock_adjtime clock_settime settimeofday",
    # CPU emulation and modes.
    "@cpu-emulation": "arch_prctl get_thread_area map_shadow_stack modify_ldt set_thread_area",
    # Change who the process is: user, group, capabilities, session.
    "@credentials": "@setuid capset lsm_set_self_attr setfsgid setfsuid setpgid setsid",
    # Debugging, tracing and performance monitoring.
    "@debug": "lookup_dcookie perf_event_open pidfd_getfd ptrace",
    # Duplicate descriptors, close many.
    "@descriptors": "close_range dup dup2 dup3",
    # Open files by handle, past every path check.
    "@file-handles": "name_to_handle_at open_by_handle_at",
    # Open, look up, list and read files; what may be imported was imported before the fork.
    "@file-read": """
        access chdir faccessat faccessat2 fchdir fgetxattr file_getattr flistxattr fstat
        fstatfs getcwd getdents getdents64 getxattr getxattrat lgetxattr listxattr
        listxattrat llistxattr lseek lstat newfstatat open openat pread64 preadv readlink
        readlinkat readv stat statfs statx
    """,
    # Create, write, link, rename, delete, lock or change files; openat2 hides its flags.
    "@file-write": """
        @chown chmod copy_file_range creat fallocate fchmod fchmodat fchmodat2 file_setattr
        flock fremovexattr fsetxattr ftruncate futimesat link linkat lremovexattr lsetxattr
        mkdir mkdirat mknod mknodat open(write) openat(write) openat2 pwrite64 pwritev
        removexattr removexattrat rename renameat renameat2 rmdir sendfile setxattr
        setxattrat splice symlink symlinkat tee truncate umask unlink unlinkat utime
        utimensat utimes vmsplice
    """,
    # Wait for events on descriptors.
    "@io-event": """
        epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait epoll_pwait2
        epoll_wait epoll_wait_old eventfd eventfd2 poll ppoll pselect6 select
    """,
    # System V IPC, POSIX message queues, pipes and memory shared between processes.
    "@ipc": """
        memfd_create mmap(shared) mq_getsetattr mq_notify mq_open mq_timedreceive
        mq_timedsend mq_unlink msgctl msgget msgrcv msgsnd pipe pipe2 process_madvise
        process_vm_readv process_vm_writev semctl semget semop semtimedop shmat shmctl
        shmdt shmget
    """,
    # Ways into the kernel that no calculation needs.
    "@kernel": """
        acct bpf lsm_get_self_attr lsm_list_modules membarrier memfd_secret mseal
        personality quotactl quotactl_fd remap_file_pages rseq rseq_slice_yield
        setdomainname sethostname uprobe uretprobe userfaultfd vhangup
    """,
    # Kernel keyrings.
    "@keyring": "add_key keyctl request_key",
    # Change limits, priorities, processors or memory placement.
    "@limits": "@resources prlimit64(set)",
    # Lock memory against swapping.
    "@memlock": "mlock mlock2 mlockall munlock munlockall",
    # Memory that no limit counts: shared, huge, scattered, merged with that of others.
    "@memory": "madvise(unsafe) mmap(shared) mremap(address)",
    # Load and unload kernel modules.
    "@module": "delete_module finit_module init_module",
    # Mount and unmount file systems, change the root directory.
    "@mount": """
        chroot fsconfig fsmount fsopen fspick mount mount_setattr move_mount open_tree
        open_tree_attr pivot_root umount2
    """,
    # Make, enter and list namespaces, list their mounts.
    "@namespaces": "listmount listns setns statmount unshare",
    # Sockets of every family.
    "@network-io": """
        accept accept4 bind connect getpeername getsockname getsockopt listen recvfrom
        recvmmsg recvmsg sendmmsg sendmsg sendto setsockopt shutdown socket socketpair
    """,
    # Watch what the machine and other processes do: file events, log, load, its name.
    "@observe": """
        fanotify_init fanotify_mark get_mempolicy getcpu inotify_add_watch inotify_init
        inotify_init1 inotify_rm_watch sched_get_priority_max sched_get_priority_min
        sysinfo syslog uname
    """,
    # Obsolete or never implemented.
    "@obsolete": """
        _sysctl afs_syscall create_module get_kernel_syms getpmsg nfsservctl putpmsg
        query_module security sysfs tuxcall uselib ustat vserver
    """,
    # Look at, reach into or hold on to another process.
    "@other-processes": """
        capget clock_getres(others) clock_gettime(others) clock_nanosleep(others)
        futex(shared) futex_requeue futex_wait futex_waitv futex_wake get_robust_list
        getpgid getpgrp getppid getpriority getsid ioprio_get kcmp pidfd_getfd pidfd_open
        process_madvise process_mrelease process_vm_readv process_vm_writev
        sched_getaffinity(others) sched_getattr sched_getparam sched_getscheduler
        sched_rr_get_interval
    """,
    # Look into or push at the cache of files that all processes share.
    "@page-cache": "cachestat fadvise64 mincore preadv2 pwritev2 readahead",
    # Memory protection keys.
    "@pkey": "pkey_alloc pkey_free pkey_mprotect",
    # Raw I/O ports.
    "@raw-io": "ioperm iopl",
    # Reboot, or load another kernel.
    "@reboot": "kexec_file_load kexec_load reboot",
    # Alter resource settings.
    "@resources": """
        ioprio_set mbind migrate_pages move_pages sched_setaffinity sched_setattr
        sched_setparam sched_setscheduler set_mempolicy set_mempolicy_home_node setpriority
        setrlimit
    """,
    # Install another seccomp filter or Landlock domain.
    "@sandbox": "landlock_add_rule landlock_create_ruleset landlock_restrict_self seccomp",
    # Change user and group ids.
    "@setuid": "setgid setgroups setregid setresgid setresuid setreuid setuid",
    # Send signals, to oneself included.
    "@signal-others": "kill pidfd_send_signal rt_sigqueueinfo rt_tgsigqueueinfo tgkill tkill",
    # Wait for signals.
    "@signal-wait": "pause rt_sigpending rt_sigsuspend rt_sigtimedwait signalfd signalfd4",
    # Create processes and threads, execute programs, wait for them.
    "@spawn": """
        clone clone3 execve execveat fork set_robust_list set_tid_address vfork wait4
        waitid
    """,
    # Switch swap devices on and off.
    "@swap": "swapoff swapon",
    # Force files and memory to disk.
    "@sync": "fdatasync fsync msync sync sync_file_range syncfs",
    # Timers.
    "@timer": """
        alarm getitimer setitimer timer_create timer_delete timer_getoverrun timer_gettime
        timer_settime timerfd_create timerfd_gettime timerfd_settime times
    """,
}

GROUPS: dict[str, tuple[str, ...]] = {g: tuple(m.split()) for g, m in _GROUPS.items()}


def expand(entries: Iterable[str]) -> frozenset[str]:
    """Replace every `@group` by its members, nested groups too.

    Entries are syscall names, `name(condition)` (kept as they are; see `seccomp.CONDITIONS`) and
    groups. Raises ValueError for a group not in GROUPS or a name that no table has.
    """
    expanded: set[str] = set()
    for entry in entries:
        if entry.startswith("@"):
            if entry not in GROUPS:
                raise ValueError(f"unknown group of system calls: {entry}")
            expanded |= expand(GROUPS[entry])
        elif any(entry.partition("(")[0] in table for table in TABLES.values()):
            expanded.add(entry)
        else:
            raise ValueError(f"unknown system call: {entry}")
    return frozenset(expanded)
