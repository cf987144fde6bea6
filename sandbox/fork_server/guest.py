"""One program: read it, evaluate it, echo the last expression's value, and exit.

Runs in a confined child of the zygote. Whatever is decided here is defence in depth and comfort:
the program may do with this process what it likes, and what comes out of it is never trusted.
"""

from __future__ import annotations

import builtins
import io
import os
import resource
import sys
import types

from sandbox.fork_server import protocol, user_defined
from sandbox.fork_server.error_text import PROGRAM_NAME, describe

TYPE_CHECKING = False  # as in typing
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import Any, NoReturn

    Show = Callable[[object, str, io.TextIOWrapper], tuple[str, Collection[bytes]]]

# What Python says of the program while it compiles it, once each: text and line.
_warned: dict[tuple[str, int], None] = {}


class World:
    """What a program finds, made once by the zygote: its own module, and its standard streams.

    Input and error stream are None but for a policy that allows `input`, which needs both. `show`
    is what is done with the last expression's value, None for none: it prints it to a stream, and
    returns PNGs, and a sentence on those that are left out.
    """

    def __init__(
        self,
        config: protocol.Configuration,
        views: Mapping[str, types.ModuleType],
        show: Show,
    ) -> None:
        removed = config["dangerous_names"]
        self.main = types.ModuleType("__main__")
        self.main.__dict__.update((name, views[of]) for name, of in config["preloaded"].items())
        self.main.__dict__["__builtins__"] = reduced_builtins(
            removed, views, config["allowed_imports"]
        )
        self.output = _Output()
        self.output_bytes = config["output_bytes"]
        self.stdout = _text(self.output)
        has_input = "input" not in removed
        self.stdin = io.StringIO() if has_input else None
        self.stderr = _text(io.BytesIO()) if has_input else None
        self.show = show


def main(world: World) -> NoReturn:
    """Read one program from descriptor 0, run it, report on descriptor 3, and end the process."""
    namespace = world.main.__dict__
    message = _read_to_end()
    if not message:  # no program is wanted any more
        os._exit(0)
    flags, statements, expression, stdin = protocol.unpack_program(message)
    if stdin and world.stdin is not None:
        sys.stdin = io.StringIO(stdin)  # here alone, as it costs 11 pages
    if flags & protocol.HELPERS:
        namespace.update(_HELPERS)
    if flags & protocol.UNCHECKED:
        namespace["__builtins__"] = builtins
    world.output.left = world.output_bytes
    has_lines = bool(flags & protocol.SEVERAL_LINES)
    shown = expression.split("\0") if flags & protocol.EVERY_LINE else [expression]
    try:
        end(*_run(statements, shown, namespace, has_lines, world))
    except MemoryError:
        os._exit(protocol.NO_MEMORY_TO_REPORT)


def rehearse(program: bytes, namespace: dict[str, Any], world: World) -> str:
    """Run a trusted program as `main` does, while descriptor 1 leads nowhere.

    Returns its error's lines, or "".
    """
    _, statements, expression, _ = protocol.unpack_program(program)
    verdict, error, _ = _run(statements, [expression], namespace, True, world)
    _report(1, verdict, error, 0)
    if verdict == protocol.OK:
        return ""
    return error or ("MemoryError" if verdict == protocol.MEMORY_LIMIT else "")


def end(verdict: int, error: str = "", pictures: Collection[bytes] = ()) -> NoReturn:
    """Report how the program ended, and end the process without any clean-up."""
    drawn = 0
    if pictures:
        try:
            drawn = os.write(1, protocol.pack_pictures(pictures))
        except BlockingIOError:  # the pipe is full
            error = "The pictures are left out: much was printed."
    try:
        _report(3, verdict, error, drawn)
    except MemoryError:
        os._exit(protocol.NO_MEMORY_TO_REPORT)
    finally:
        os._exit(0)


def _report(descriptor: int, verdict: int, error: str, picture_bytes: int) -> None:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    cpu = round((usage.ru_utime + usage.ru_stime) * 1e6)
    report = protocol.pack_report(verdict, cpu, usage.ru_maxrss, error, picture_bytes)
    os.write(descriptor, report)


def _read_to_end() -> bytes:
    data = b""
    while chunk := os.read(0, 1 << 17):
        data += chunk
    os.close(0)
    return data


def _text(raw: Any) -> io.TextIOWrapper:
    """Return a stream that buffers nothing, as a program may be killed at any time."""
    return io.TextIOWrapper(raw, "utf-8", "backslashreplace", "\n", write_through=True)


class _Output(io.RawIOBase):
    """Descriptor 1, which accepts so many bytes; at the first one too many the process exits."""

    left = sys.maxsize

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        accepted = bytes(data[: self.left])
        try:
            written = os.write(1, accepted) if accepted else 0
        except BlockingIOError:  # the pipe is full, and nobody reads before this process ends
            written = 0
        if written < len(data):
            end(protocol.OUTPUT_LIMIT)
        self.left -= written
        return written


_HELPERS = {name: getattr(user_defined, name) for name in user_defined.__all__}


def show_as_print(value: object, _: str, stdout: io.TextIOWrapper) -> tuple[str, tuple[()]]:
    """Show a value as Python's own console does, in one write, where `print` makes two."""
    if value is not None:
        stdout.write(f"{value!s}\n")
    return "", ()


def note_warning(
    message: Warning | str, category: type[Warning], _: str, line: int, *__: object
) -> None:
    """Do what `warnings.showwarning` does."""
    _warned[f"{category.__name__}: {message}", line] = None


def _warnings(has_lines: bool, left_out: str = "") -> str:
    if not _warned:
        return left_out
    lines = [f"{text} (line {line})" if has_lines else text for text, line in list(_warned)[:3]]
    return "\n".join([*lines, left_out] if left_out else lines)


def reduced_builtins(
    removed: Collection[str], views: Mapping[str, types.ModuleType], allowed: Collection[str]
) -> dict[str, object]:
    """Return the builtins without those removed, and with an import of views alone."""
    reduced = {
        name: value
        for name, value in vars(builtins).items()
        if name not in removed and not name.startswith("__")
    }
    reduced["__build_class__"] = builtins.__build_class__
    reduced["__import__"] = _guarded_import(views, allowed)
    return reduced


def _guarded_import(
    views: Mapping[str, types.ModuleType], allowed: Collection[str]
) -> Callable[..., types.ModuleType]:
    real_import = builtins.__import__

    def guarded(
        name: str,
        globals: Mapping[str, object] | None = None,  # noqa: A002
        locals: Mapping[str, object] | None = None,  # noqa: A002
        fromlist: Any = (),
        level: int = 0,
    ) -> types.ModuleType:
        # The interpreter's own C code (strptime, big integers) imports through its caller's
        # builtins and passes a list (Python/import.c, PyImport_Import); a statement does not.
        if type(fromlist) is list:
            return real_import(name, globals, locals, fromlist, level)
        if level or name not in allowed:
            raise ImportError(f"{name} may not be imported here")
        view = views[name if fromlist else name.partition(".")[0]]
        # Where a module lacks a name, the interpreter would look for a submodule in sys.modules.
        for one in fromlist or ():
            if one != "*" and not hasattr(view, one):
                raise ImportError(f"cannot import name {one!r} from {name!r}", name=name)
        return view

    return guarded


def _run(
    statements: str,
    expressions: Sequence[str],
    namespace: dict[str, Any],
    has_lines: bool,
    world: World,
) -> tuple[int, str, Collection[bytes]]:
    """Run every statement; then show the value of each expression, of which "" has none.

    Returns the verdict; the lines of an error, or of warnings where there is none; and pictures.
    Without comprehensions and keywords, as each of these copies pages: 6, and 3.
    """
    _warned.clear()
    try:
        try:
            first = compile(statements, PROGRAM_NAME, "exec", 0, True) if statements else None
            last = []
            for each in expressions:
                code = compile(each, PROGRAM_NAME, "eval", 0, True) if each else None
                last.append((each, code))
        except (SyntaxError, ValueError) as error:
            return protocol.SYNTAX_ERROR, describe(error, has_lines=has_lines), ()
        # To run it is what this process, confined and of no other use, exists for.
        if first is not None:
            exec(first, namespace)  # nosec B102
        for expression, code in last:
            value = eval(code, namespace) if code is not None else None  # nosec B307
            if type(value) is str and not value:
                value = "''"  # else there is nothing to see
            left_out, pictures = world.show(value, expression, world.stdout)
        return protocol.OK, _warnings(has_lines, left_out), pictures
    except MemoryError:
        return protocol.MEMORY_LIMIT, "", ()
    except SystemExit as error:
        if error.code:
            return protocol.ERROR, describe(error, has_lines=has_lines), ()
        return protocol.OK, _warnings(has_lines), ()
    except BaseException as error:
        return protocol.ERROR, describe(error, has_lines=has_lines), ()
