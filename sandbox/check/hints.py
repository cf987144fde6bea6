"""What to write instead of what is refused: one sentence for each of the most frequent refusals."""

# Sentence -> names, modules, `module.name` and attributes that it is for.
_HINTS = {
    "nothing can be typed in; write the value into the program": "input",
    "write the values into the program": "argparse getopt optparse",
    "write `input()`, which reads a line of what is sent with the program": "sys.stdin fileinput",
    "there are no files; keep the text in a string, and go through `text.splitlines()`": (
        "open os pathlib io glob shutil tempfile __file__"
    ),
    "split each line: `line.split(',')`": "csv",
    "`json.dumps` and `json.loads` turn values into text and back": "pickle shelve marshal yaml",
    "write `print(json.dumps(x, indent=2))`": "pprint",
    "write the code itself, or a dict of functions to choose from": "eval exec compile",
    "write `x.name`, or keep what you look up by name in a dict": "getattr",
    "write `x.name = value`, or keep what you look up by name in a dict": "setattr",
    "write `del x.name`": "delattr",
    "keep what you look up by name in a dict": "globals locals vars __dict__",
    "look in Python's documentation for the names that something has": "dir help inspect",
    "a program ends by itself; in a function write `return`": "exit quit sys.exit",
    "write `import`": "__import__ importlib",
    "write `type(x)`": "__class__ types",
    "compare it, `__name__ == '__main__'`, or read it of something, `f.__name__`": "__name__",
    "calls may nest 1000 deep; leave it out, or write a loop": "sys.setrecursionlimit",
    "write `print` without `file`": "sys.stderr",
    "a program cannot wait; leave it out": "time.sleep",
    "do one thing after the other, in a loop": (
        "threading multiprocessing asyncio concurrent signal"
    ),
    "`collections.deque` and `heapq` are queues": "queue",
    "there are no other programs to start": "subprocess",
    "there is no network; paste the data into the program": (
        "requests urllib socket http ssl email ftplib smtplib bs4 httpx aiohttp"
    ),
    "lists, `sum`, `math` and `statistics` do the same for small data": "numpy scipy pandas",
    "there are no pictures; print the numbers": "matplotlib turtle tkinter pygame PIL",
    "take `time.perf_counter()` before and after": "timeit cProfile",
    "write `print`": "logging warnings traceback",
    "write `assert`": "unittest doctest pytest",
    "`random` serves for all but passwords": "secrets uuid",
    "`random.Random()` draws as well": "random.SystemRandom",
    "keep the types in a dict": "typing.get_type_hints",
    "`dataclasses.replace` does it for a dataclass": "copy.replace",
    "write `@dataclass` above a class": "dataclasses.make_dataclass",
    "write `if isinstance(x, int):`": "functools.singledispatch singledispatch",
    "write the method, with `return self.other(...)`": "partialmethod",
    "write `@functools.wraps(function)` above the `def`": "update_wrapper",
    "write `lambda x: x.name`": "attrgetter",
    "write `lambda x: x.name()`": "methodcaller",
    "write `class D(dict):`": "UserDict",
    "write `class L(list):`": "UserList",
    "write `class S(str):`": "UserString",
    "an f-string does the same": "format_map Formatter",
}
_OF = {name: sentence for sentence, names in _HINTS.items() for name in names.split()}


def hint(*names: str) -> str:
    """Return ": " and what to write instead of the first name that has a hint, or ""."""
    return next((f": {_OF[name]}" for name in names if name in _OF), "")
