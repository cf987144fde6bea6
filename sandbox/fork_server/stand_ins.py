"""Library functions that get, set or run by text, kept to what a program's own text could say.

`str.format` reads the attributes that a field names, `dataclasses` executes the names of fields,
`copy` sets the attributes that an object's own `__reduce_ex__` names, `enum` looks members up in
whatever calls itself an enum class, `typing` makes code of the text of annotations. Each is changed
in place, once, before the fork. What a program merely reads (`sys.argv`) is replaced in its view
alone.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import importlib
import sys
import types
import unicodedata

TYPE_CHECKING = False  # as in typing
if TYPE_CHECKING:
    import io
    from collections.abc import Collection
    from typing import Any


def _lean_inspect() -> types.ModuleType:
    """Return the part of `inspect` that `dataclasses` uses."""
    inspect: Any = types.ModuleType("inspect")
    inspect.signature = lambda _: ""  # for the docstring of a class without one
    inspect.get_annotations = lambda cls: dict(vars(cls).get("__annotations__", ()))
    inspect.unwrap = lambda function: function
    return inspect  # type: ignore[no-any-return]


def _lean_locale() -> types.ModuleType:
    """Return what libc says of locales, without the names of a thousand of them."""
    locale: Any = types.ModuleType("locale")
    vars(locale).update(vars(importlib.import_module("_locale")))
    locale.getlocale = locale.setlocale  # without a second argument it asks
    return locale  # type: ignore[no-any-return]


# Module -> what it can do without, and what it gets for that. `inspect` brings 12 modules and
# 0.9 MB, OpenSSL 16 mappings, and each makes a fork 5 % dearer; `locale` brings 0.4 MB;
# `_statistics` and `_typing` are 5 mappings, 1.6 us each, for one function that there is in Python
# too.
_LEAN = {
    "_strptime": ("locale", _lean_locale),
    "calendar": ("locale", _lean_locale),
    "dataclasses": ("inspect", _lean_inspect),
    "hashlib": ("_hashlib", lambda: None),
    "statistics": ("_statistics", lambda: None),
    "typing": ("_typing", lambda: None),
}


def lean_import(name: str) -> types.ModuleType:
    """Import a module without the heavy half of what it imports."""
    needless, instead = _LEAN.get(name, ("", None))
    is_there = needless in sys.modules or needless in sys.builtin_module_names
    if instead is None or name in sys.modules or is_there:
        return importlib.import_module(name)
    sys.modules[needless] = instead()  # type: ignore[assignment]
    try:
        return importlib.import_module(name)
    finally:
        del sys.modules[needless]


class Sealed(type):
    """A class whose attributes nobody can set."""

    def __setattr__(cls, name: str, value: object) -> None:
        raise AttributeError("this may not be changed here")

    __delattr__: Any = __setattr__


class _Input:
    """What `sys.stdin` is to a program: the lines that came with it, if any did."""

    __slots__ = ()

    def read(self) -> str:
        return self._lines().read()

    def readline(self) -> str:
        return self._lines().readline()

    def readlines(self) -> list[str]:
        return self._lines().readlines()

    def __iter__(self) -> _Input:
        return self

    def __next__(self) -> str:
        return next(self._lines())

    def _lines(self) -> io.StringIO:
        lines: io.StringIO | None = sys.stdin  # type: ignore[assignment]
        if not (lines and lines.getvalue()):
            raise EOFError("EOF when reading a line")  # as `input` says it
        return lines


class _Output:
    """What `sys.stdout` and `sys.stderr` are to a program: a way to print."""

    __slots__ = ()

    def write(self, text: str) -> int:
        return sys.stdout.write(text)

    def writelines(self, lines: Collection[str]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Do nothing: a guest holds no output back."""


class _CachedProperty:
    """functools.cached_property, whose name is the one it was given in a class body.

    The library's reads any text of any `__dict__`; this one writes an instance's own.
    """

    __slots__ = ("_function", "_name")

    def __init__(self, func: Any) -> None:
        self._function = func
        self._name: str | None = None

    def __set_name__(self, owner: type, name: str) -> None:
        if self._name not in (None, name):
            raise TypeError("a cached_property may have one name")
        self._name = name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        if instance is None:
            return self
        values = object.__getattribute__(instance, "__dict__")
        if type(values) is not dict or self._name is None:
            raise TypeError("a cached_property needs a name, and an instance with attributes")
        if self._name not in values:
            values[self._name] = self._function(instance)
        return values[self._name]


def _wraps(wrapped: Any) -> Any:
    """Return functools.wraps(wrapped) without its options, as a function that shows no other."""
    return lambda wrapper: functools.update_wrapper(wrapper, wrapped)


# Module -> name -> what programs get for it.
REPLACED: dict[str, dict[str, object]] = {
    "functools": {"cached_property": _CachedProperty, "wraps": _wraps},
    "sys": {"argv": ["<program>"], "stderr": _Output(), "stdin": _Input(), "stdout": _Output()},
}


def install(closed: Collection[str]) -> None:
    """Change those of these modules that are imported. `closed` are attributes nobody may name."""
    _keep_formats_to_names(closed)
    _keep_wrappers_to_functions()
    if "copy" in sys.modules:
        _keep_copies_to_their_class(closed)
    if "enum" in sys.modules:
        _keep_members_to_plain_enums()
    if "dataclasses" in sys.modules:
        _keep_fields_to_names(closed)
    if "typing" in sys.modules:
        _keep_annotations_as_they_are()
    if "annotationlib" in sys.modules:  # from Python 3.14 on; the same for its own references
        references: Any = sys.modules["annotationlib"]
        references.ForwardRef.evaluate = lambda self, **_: self  # as where a name is missing


def _is_open(name: object, closed: Collection[str]) -> bool:
    """Tell whether a name is a text that may be an attribute's in a program."""
    return type(name) is str and name[:2] != "__" and name not in closed


def _keep_formats_to_names(closed: Collection[str]) -> None:
    """Let `str.format` read only attributes that a program could write itself, or see as text.

    The class is immutable to Python: its namespace is set from beneath, and the interpreter told.
    """
    string: Any = importlib.import_module("_string")
    real: Any = str.format
    holds = str.__contains__  # whatever a subclass says

    def check(template: str) -> None:
        for _, field, spec, _ in string.formatter_parser(template):
            for is_attribute, name in string.formatter_field_name_split(field or "")[1]:
                is_shown = name in ("__class__", "__name__", "__qualname__")
                if is_attribute and not (is_shown or _is_open(name, closed)):
                    raise AttributeError(f"`.{name}` may not be used here")
            if spec:
                check(spec)

    def format(self: str, /, *arguments: object, **named: object) -> str:  # noqa: A001
        if isinstance(self, str) and holds(self, "."):
            try:  # noqa: SIM105 # a program may change contextlib's classes
                check(self)
            except ValueError:  # `real` reads as far, and raises it in its turn
                pass
        return real(self, *arguments, **named)  # type: ignore[no-any-return]

    format.__qualname__ = real.__qualname__
    [namespace] = gc.get_referents(vars(str))
    namespace["format"] = format
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(str))


def _keep_annotations_as_they_are() -> None:
    """Let `typing` neither compile the text of an annotation, nor look one up in itself to copy it.

    Programs come by both kinds of objects, and what is copied is handed to them.
    """
    typing: Any = importlib.import_module("typing")
    typing.compile = typing.eval = lambda *_: None
    if sys.version_info >= (3, 14):
        importlib.import_module("annotationlib")  # which `typing` else imports when it needs it
    alias = typing._GenericAlias
    alias.__reduce__ = object.__reduce__
    alias.__copy__ = alias.__deepcopy__ = lambda self, *_: self


def _keep_wrappers_to_functions() -> None:
    """Let update_wrapper (of `lru_cache` and `wraps`) copy no namespace but a function's."""
    real: Any = functools.update_wrapper
    functions = (types.FunctionType, type(functools.lru_cache(len)))

    def update_wrapper(
        wrapper: Any,
        wrapped: Any,
        assigned: Any = functools.WRAPPER_ASSIGNMENTS,
        updated: Any = functools.WRAPPER_UPDATES,
    ) -> Any:
        return real(wrapper, wrapped, assigned, updated if type(wrapped) in functions else ())

    functools.update_wrapper = update_wrapper


def _keep_copies_to_their_class(closed: Collection[str]) -> None:
    """Let `copy` read no closed attribute, and set them only on a new object of the class copied.

    The names of slots may be any text, and what has them may pass on another object's attributes.
    """
    copy: Any = importlib.import_module("copy")
    real = copy._reconstruct

    def reconstruct(x: object, memo: Any, func: Any, args: Any, *state: Any, **more: Any) -> Any:
        def make(*args: Any) -> object:
            made = func(*args)
            if type(made) is not type(x):
                raise TypeError(f"a {type(x).__name__} cannot be copied as a {type(made).__name__}")
            return made

        match state:
            case [(_, dict(slots)), *_]:
                for name in slots:
                    if not _is_open(name, closed):
                        raise TypeError(f"a {type(x).__name__} cannot be copied with its {name}")
        # A method is looked up again by its function's name, which may be any text.
        return x if func is getattr else real(x, memo, make, args, *state, **more)

    copy._reconstruct = reconstruct


def _keep_members_to_plain_enums() -> None:
    """Let `enum` make members only in classes that surely are what they say: EnumType's own."""
    enum: Any = importlib.import_module("enum")
    real = enum._proto_member.__set_name__

    def set_name(self: Any, enum_class: type, member_name: str) -> None:
        if type(enum_class) is not enum.EnumType:
            raise TypeError("an enum class with a metaclass of its own cannot be made here")
        real(self, enum_class, member_name)

    enum._proto_member.__set_name__ = set_name


def _keep_fields_to_names(closed: Collection[str]) -> None:  # noqa: C901
    """Let `dataclasses` execute and read only names that a program could write as attributes."""
    dataclasses: Any = importlib.import_module("dataclasses")
    plain = (type, type(importlib.import_module("abc").ABC))
    namespace_of: Any = type.__dict__["__dict__"].__get__
    bases_of: Any = type.__dict__["__mro__"].__get__
    process_class, real_fields = dataclasses._process_class, dataclasses.fields
    get_field = dataclasses._get_field
    made: set[int] = set()  # ids of the classes that `dataclass` has returned
    kept: list[type] = []  # the same classes, so that no id is used again
    plain_field = dataclasses.Field
    slot = plain_field.__dict__["name"]

    def is_name(name: object) -> bool:
        if type(name) is not str or not name.isidentifier():
            return False
        return _is_open(unicodedata.normalize("NFKC", name), closed)  # as the compiler reads it

    def set_name(field: object, name: object) -> None:
        if name is not None and not is_name(name):
            raise TypeError(f"{name!r} cannot be a field here")
        slot.__set__(field, name)

    class Field(plain_field, metaclass=Sealed):  # type: ignore[misc, valid-type]
        __slots__ = ()
        __module__ = "dataclasses"
        __qualname__ = "Field"
        name = property(slot.__get__, set_name)

    def get(*of: Any) -> Any:
        found = get_field(*of)
        if type(found) is not dataclasses.Field:
            raise TypeError("a field of a class of its own cannot be made here")
        return found

    def process(cls: type, *options: Any, **more: Any) -> type:
        for base in bases_of(cls):
            if type(base) not in plain:
                raise TypeError("a dataclass with a metaclass of its own cannot be made here")
            if "__dataclass_fields__" in namespace_of(base) and id(base) not in made:
                raise TypeError(f"the fields of {base.__name__} are not those of a dataclass")
        result: type = process_class(cls, *options, **more)
        positions = namespace_of(result).get("__match_args__", ())  # a class may have had its own
        if type(positions) is not tuple or not all(map(is_name, positions)):
            raise TypeError(f"the positions of {result.__name__} are not names of attributes")
        made.add(id(result))
        kept.append(result)
        return result

    def fields(class_or_instance: object) -> tuple[Any, ...]:
        found: tuple[Any, ...] = real_fields(class_or_instance)
        if any(type(one) not in (dataclasses.Field, plain_field) for one in found):
            raise TypeError("these are not the fields of a dataclass")
        return found

    def replace(obj: Any, /, **changes: Any) -> Any:
        if id(type(obj)) not in made:
            raise TypeError("replace() should be called on dataclass instances")
        kept = {one.name: getattr(obj, one.name) for one in fields(obj) if one.init}
        return type(obj)(**kept | changes)

    dataclasses.Field, dataclasses._get_field = Field, get
    dataclasses._process_class = process
    dataclasses.fields = fields
    dataclasses.replace = replace
