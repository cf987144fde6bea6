"""What the modules that are no pure computation give a program: files, network, processes ..."""

import sys
from collections.abc import Iterable
from importlib.machinery import BuiltinImporter, FrozenImporter, PathFinder
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_ALIASES = {"collections.abc", "os.path"}  # modules that another one puts where no file has them

INSIDES = "the interpreter's insides"
_GIVES = {
    "files": """
        antigravity bz2 codecs compileall compression configparser dbm ensurepip filecmp fileinput
        fnmatch gettext glob gzip io linecache locale logging lzma mailbox mimetypes netrc nt ntpath
        os pathlib plistlib posix posixpath py_compile pyclbr shelve shutil site sqlite3 stat
        sysconfig tabnanny tarfile tempfile tokenize wave xml zipapp zipfile zipimport zoneinfo
        aifc chunk crypt imghdr sndhdr sunau uu cgi nturl2path genericpath pandas PIL matplotlib
        mpl_toolkits""",
    "the network": """
        asyncio asynchat asyncore email ftplib http imaplib mailcap nntplib poplib select selectors
        smtpd smtplib socket socketserver ssl telnetlib urllib uuid webbrowser wsgiref xmlrpc cgitb
        aiogram aiohttp anyio falcon gunicorn httpcore httpx paramiko redis requests telebot urllib3
        websockets""",
    "processes, threads and signals": """
        atexit cmd concurrent faulthandler fcntl multiprocessing pty pipes queue resource sched
        signal subprocess syslog termios thread threading tty venv gevent greenlet psutil""",
    INSIDES: """
        __main__ abc annotationlib ast bdb builtins cProfile code codeop contextlib copy copyreg
        dataclasses dis distutils doctest encodings enum gc imp importlib inspect lib2to3 marshal
        modulefinder opcode optparse argparse pdb pickle pickletools pkgutil profile pstats pydoc
        pydoc_data pyexpat reprlib rlcompleter runpy sre_compile sre_constants sre_parse symtable
        sys test timeit this
        trace traceback tracemalloc types typing unittest warnings weakref idlelib attr attrs
        cloudpickle dill pydantic yaml""",
    "native code and raw memory": """
        ctypes curses cffi cython mmap msvcrt numba numpy ossaudiodev readline scipy tkinter
        torch turtle turtledemo winreg winsound zlib cupy tensorflow""",
    "the machine and its accounts": "getpass grp nis pwd platform secrets spwd",
    "the evaluation of text": "numexpr simpleeval sympy asteval",
    "the bot itself": "function sandbox tools tests",
}
GIVES = {name: what for what, names in _GIVES.items() for name in names.split()}
# One function each, or a command line, that the rest of its package has not.
GIVES |= {"json.tool": "files", "collections.__main__": "files"}

# Of impure modules, what is computation all the same; after a minus, what is not.
_HALVES = {
    "abc": "-update_abstractmethods get_cache_token",
    "contextlib": "-redirect_stdout redirect_stderr chdir",
    "copy": "-replace",
    "dataclasses": "-make_dataclass",
    "enum": "-property global_enum global_enum_repr global_flag_repr global_str verify",
    "sys": """
        argv byteorder exit float_info float_repr_style getrecursionlimit getsizeof hash_info
        implementation int_info intern maxsize maxunicode platform stdout version version_info""",
    "typing": "-get_type_hints ForwardRef evaluate_forward_ref no_type_check runtime_checkable",
}

# What reaches outside the process; an object made there is as bad as the module.
OUTSIDE = sorted(
    name
    for name, what in GIVES.items()
    if what in {"files", "the network", "processes, threads and signals"}
)


def gives(module: str) -> str | None:
    """What a module gives beyond computation, by its own name, its package's or its public one."""
    steps = module.split(".")
    packages = [".".join(steps[:count]) for count in range(len(steps), 0, -1)]
    for package in packages:
        if what := GIVES.get(package) or GIVES.get(package.lstrip("_")):
            return what
    is_private = any(step.startswith("_") for step in steps)
    if is_private and steps[0] in sys.stdlib_module_names:
        return INSIDES
    return None


def gives_beyond(module: str, names: Iterable[str] | None) -> str | None:
    """What an entry of allowed_imports gives beyond computation: a module, or names of it."""
    what = gives(module)
    if what is None or names is None or module not in _HALVES:
        return what
    listed = _HALVES[module]
    is_denied = listed.startswith("-")
    judged = set(listed.lstrip("-").split())
    bad = [name for name in names if name.startswith("_") or (name in judged) == is_denied]
    return f"{what}, by {bad[0]}" if bad else None


def is_trusted(module: str, names: Iterable[str] | None) -> bool:
    """Whether an entry is known to do nothing but compute, also while it is imported."""
    is_standard = module.partition(".")[0] in sys.stdlib_module_names
    return is_standard and gives_beyond(module, names) is None


def exists(module: str) -> bool:
    """Whether there is a module, by its file: nothing is imported, no parent package either.

    It is looked for where the zygote does: neither here nor in the current folder.
    """
    if module in _ALIASES:
        return True
    path: list[str] | None = [p for p in sys.path if p and Path(p).resolve() != _ROOT]
    steps = module.split(".")
    for count in range(1, len(steps) + 1):
        name = ".".join(steps[:count])
        spec = PathFinder.find_spec(name, path)
        if count == 1 and spec is None:
            spec = BuiltinImporter.find_spec(name) or FrozenImporter.find_spec(name)
        if spec is None:
            return False
        path = list(spec.submodule_search_locations or ())
    return True


def pure() -> set[str]:
    """The standard library's modules that give nothing but computation."""
    return {
        name for name in sys.stdlib_module_names if not name.startswith("_") and gives(name) is None
    }


# What gets, sets or evaluates by text, so that a checker that reads names cannot see what it does.
BY_TEXT = {
    "collections": "UserDict UserList UserString",
    "functools": "partialmethod singledispatch singledispatchmethod update_wrapper",
    "operator": "attrgetter methodcaller",
    "string": "Formatter",
}
# Attributes of values, on any version of Python, that do so or lead out of the program.
REVEALING = {
    "_add_member_": "sets attributes by text",
    "_convert_": "sets names of a module by text",
    "_evaluate": "evaluates text",
    "_get_mixins_": "reads attributes by text",
    "format_map": "reads attributes by text",
    "mro": "leads to the classes behind a value",
}

# Builtins that do nothing but compute and print.
_HARMLESS_NAMES = (
    "abs aiter all anext any ascii bin bool bytearray bytes callable chr classmethod complex dict "
    "divmod enumerate filter float format frozenset hasattr hash hex id input int isinstance "
    "issubclass iter len list map max min next object oct ord pow print property range repr "
    "reversed round set slice sorted staticmethod str sum super tuple type zip"
)
HARMLESS = frozenset(_HARMLESS_NAMES.split())
