"""What to write instead of what is refused: one sentence for each of the most frequent refusals."""

__all__ = ["hint"]

_NO_INPUT = "nothing can be typed in; write the value into the program"
_NO_FILES = "there are no files; keep the text in a string, and go through `text.splitlines()`"
_NO_CLOCK = "a program cannot wait; leave it out"
_NO_TEXT_CODE = "write the code itself, or a dict of functions to choose from"
_NO_NAMES = "keep what you look up by name in a dict"
_NO_THREADS = "do one thing after the other, in a loop"
_NO_NETWORK = "there is no network; paste the data into the program"

_HINTS = {
    # builtins
    "input": _NO_INPUT,
    "open": _NO_FILES,
    "eval": _NO_TEXT_CODE,
    "exec": _NO_TEXT_CODE,
    "compile": _NO_TEXT_CODE,
    "getattr": "write `x.name`; or " + _NO_NAMES,
    "setattr": "write `x.name = value`; or " + _NO_NAMES,
    "delattr": "write `del x.name`",
    "globals": _NO_NAMES,
    "locals": _NO_NAMES,
    "vars": _NO_NAMES,
    "dir": "look in Python's documentation for the names that something has",
    "help": "look in Python's documentation",
    "exit": "a program ends by itself; in a function write `return`",
    "quit": "a program ends by itself; in a function write `return`",
    # modules
    "numpy": "lists, `sum`, `math` and `statistics` do the same for small data",
    "pandas": "lists of dicts, `csv`-like text and `statistics` do the same for small data",
    "matplotlib": "there are no pictures; print the numbers",
    "os": _NO_FILES,
    "pathlib": _NO_FILES,
    "io": _NO_FILES,
    "csv": "split each line: `line.split(',')`",
    "pickle": "`json.dumps` and `json.loads` turn values into text and back",
    "threading": _NO_THREADS,
    "multiprocessing": _NO_THREADS,
    "asyncio": _NO_THREADS,
    "concurrent": _NO_THREADS,
    "subprocess": "there are no other programs to start",
    "requests": _NO_NETWORK,
    "urllib": _NO_NETWORK,
    "socket": _NO_NETWORK,
    "timeit": "take `time.perf_counter()` before and after",
    "argparse": "write the values into the program",
    "logging": "write `print`",
    "unittest": "write `assert`",
    "doctest": "write `assert`",
    "pprint": "write `print(json.dumps(x, indent=2))`",
    "secrets": "`random` serves for all but passwords",
    "contextlib": "write a class with `__enter__` and `__exit__`",
    "inspect": "ask `type(x)` and `x.__name__`",
    "types": "ask `type(x)`",
    # half of modules
    "sys.stdin": "write `input()`, which reads a line of what is sent with the program",
    "sys.stderr": "write `print` without `file`",
    "sys.setrecursionlimit": "calls may nest 1000 deep; leave it out, or write a loop",
    "time.sleep": _NO_CLOCK,
    "random.SystemRandom": "`random.Random()` draws as well",
    "typing.get_type_hints": "keep the types in a dict",
    "copy.replace": "`dataclasses.replace` does it for a dataclass",
    "dataclasses.make_dataclass": "write `@dataclass` above a class",
    "functools.singledispatch": "write `if isinstance(x, int):`",
    "functools.partialmethod": "write the method, with `return self.other(...)`",
    "functools.update_wrapper": "write `@functools.wraps(function)` above the `def`",
    "operator.attrgetter": "write `lambda x: x.name`",
    "operator.methodcaller": "write `lambda x: x.name()`",
    "collections.UserDict": "write `class D(dict):`",
    "collections.UserList": "write `class L(list):`",
    "collections.UserString": "write `class S(str):`",
    # attributes
    "attrgetter": "write `lambda x: x.name`",
    "methodcaller": "write `lambda x: x.name()`",
    "format_map": "an f-string does the same",
    "__class__": "write `type(x)`",
    "__dict__": "keep the values in a dict of your own",
    "__import__": "write `import`",
    "__file__": _NO_FILES,
    "__name__": 'it may be read, `f.__name__`, and compared, `__name__ == "__main__"`',
}


def hint(*names: str) -> str:
    """Return ": " and what to write instead of the first name that has a hint, or ""."""
    for name in names:
        if name in _HINTS:
            return f": {_HINTS[name]}"
    return ""
