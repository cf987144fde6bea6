"""Imports point one way: each room imports from those before it, and none from those after it."""

import ast
import sys
from functools import cache
from itertools import chain

import pytest

import sandbox
from tools.serve import ROOT

# From the lowest room to the highest.
ORDER = {
    "sandbox": """
        kernel
        policy
        check
        fork_server
        self_test
        sandbox
        policy_watch
    """,
    "function": """
        machine
        parts
        errors
        settings
        state
        telegram
        observability
        program
        natural
        calculator
        answers
        rate_limit
        session
        bot
        delivery
        http
        app
        gunicorn_conf
    """,
}
RANKS = {
    f"{house}.{room}": rank
    for house, order in ORDER.items()
    for rank, room in enumerate(order.split())
}
PRODUCT = ("function", "sandbox", "tools")
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for house in PRODUCT
    for path in sorted((ROOT / house).rglob("*.py"))
}
LIBRARIES_OF_SANDBOX = {"yaml", "jsonschema"}


@cache
def imports(module: str) -> frozenset[str]:
    """Return what a module imports anywhere in it; of a package's names, the submodules."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(MODULES[module].read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: write the whole name of what is imported"
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= names & MODULES.keys() or {str(node.module)}
    return frozenset(found)


def room(module: str) -> str:
    """Return the room of a module: its house and the first name in it."""
    return ".".join(module.split(".")[:2])


def inside(house: str) -> list[str]:
    """Return the modules of a house, without the one that gives its public names."""
    return [module for module in MODULES if module.startswith(f"{house}.")]


@pytest.mark.parametrize("house", ORDER)
def test_a_room_imports_from_those_before_it_alone(house: str) -> None:
    upward = [
        f"{module} imports {imported}"
        for module in inside(house)
        for imported in imports(module)
        if imported.startswith(f"{house}.") and RANKS[room(imported)] > RANKS[room(module)]
    ]
    assert upward == []


def test_each_room_has_its_place_in_the_order() -> None:
    assert {room(module) for house in ORDER for module in inside(house)} == RANKS.keys()


def test_no_module_imports_itself_by_way_of_others() -> None:
    done: set[str] = set()

    def visit(module: str, way: tuple[str, ...]) -> None:
        assert module not in way, " -> ".join((*way, module))
        if module not in done:
            for imported in imports(module) & MODULES.keys() - {"sandbox"}:
                visit(imported, (*way, module))
            done.add(module)

    for module in MODULES.keys() - {"sandbox"}:
        visit(module, ())


def test_the_function_imports_public_names_of_the_sandbox_alone() -> None:
    public = {*chain(*sandbox._NAMES.values())}
    for module in inside("function"):
        for node in ast.walk(ast.parse(MODULES[module].read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("sandbox"):
                assert node.module == "sandbox", module
                assert {alias.name for alias in node.names} <= public, module
        assert not [name for name in imports(module) if name.startswith("sandbox.")], module


@pytest.mark.parametrize(
    ("house", "strangers"),
    [
        ("sandbox", {"function", "tools", "tests"}),
        ("function", {"tools", "tests"}),
        ("tools", {"tests"}),
    ],
)
def test_no_house_knows_of_those_above_it(house: str, strangers: set[str]) -> None:
    known = {name.split(".")[0] for module in inside(house) for name in imports(module)}
    assert not known & strangers


def test_the_sandbox_needs_two_libraries() -> None:
    known = {name.split(".")[0] for module in inside("sandbox") for name in imports(module)}
    assert known - sys.stdlib_module_names - {"sandbox"} == LIBRARIES_OF_SANDBOX


def test_zygote_and_guest_import_the_standard_library_alone() -> None:
    found, waiting = set(), {"sandbox.fork_server.zygote", "sandbox.fork_server.guest"}
    while waiting:
        module = waiting.pop()
        found.add(module)
        waiting |= imports(module) & MODULES.keys() - found
    known = set(chain.from_iterable(map(imports, found))) - found
    assert {name.split(".")[0] for name in known} <= sys.stdlib_module_names
    assert {room(module) for module in found} == {"sandbox.fork_server", "sandbox.kernel"}
