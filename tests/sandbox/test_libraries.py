"""sympy, mpmath, numpy and matplotlib under maths.yaml: what they answer, and no way out."""

import cmath
import contextlib
import io
import json
import math
import re
import statistics
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sandbox.fork_server.libraries import keep_readable_fonts
from sandbox.fork_server.zygote_process import ZygoteProcess
from sandbox.policy.libraries import in_parts
from sandbox.policy.loader import Policy
from sandbox.sandbox import Sandbox, SandboxUnavailable
from tests.conftest import ROOT
from tests.sandbox.guests import guests
from tools.policy_lint import main as lint

for module in ("matplotlib", "sympy"):
    pytest.importorskip(module, reason="the packages of function/maths.txt are not installed")

INTEGRAL = "integrate(exp(-x**2), (x, -oo, oo))"


def rows(corpus: str) -> list[dict[str, str]]:
    lines = (ROOT / "tests/corpus" / corpus).read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("row", [pytest.param(row, id=row["id"]) for row in rows("maths.jsonl")])
def test_they_answer_in_a_guest_under_every_layer(maths: Sandbox, row: dict[str, str]) -> None:
    outcome = maths.run(row["source"])
    assert (outcome.kind, outcome.output, outcome.error) == ("ok", f"{row['output']}\n", "")


def near(one: complex, other: complex, by: float = 1e-8) -> bool:
    return abs(one - other) <= by * max(1, abs(one))


def slope(function: Callable[[float], complex], at: float) -> complex:
    step = 1e-4
    rise = 8 * (function(at + step) - function(at - step))
    return (rise - function(at + 2 * step) + function(at - 2 * step)) / (12 * step)


def area(function: Callable[[float], complex], start: float, end: float) -> complex:
    """Return an integral by Simpson's rule."""
    step = (end - start) / 20000
    heights = [function(start + number * step) for number in range(20001)]
    odd, even = sum(heights[1::2]), sum(heights[2:-1:2])
    return (heights[0] + 4 * odd + 2 * even + heights[-1]) * step / 3


PLAIN = vars(cmath) | {"I": 1j, "E": math.e, "oo": math.inf, "O": lambda _: 0}


@pytest.mark.parametrize("row", [pytest.param(row, id=row["id"]) for row in rows("maths.jsonl")])
def test_the_answer_is_right_by_other_means_than_the_libraries(row: dict[str, str]) -> None:
    symbols, _, numbers = row["output"].replace("\n≈", " ≈").partition(" ≈ ")

    def it(x: float = math.nan, **others: float) -> Any:
        return eval(symbols, PLAIN | {"x": x} | others)

    names = {"it": it, "cmath": cmath, "math": math, "statistics": statistics}
    names |= {"near": near, "slope": slope, "area": area}
    for name, text in (("values", symbols), ("numbers", numbers), ("number", numbers or symbols)):
        with contextlib.suppress(SyntaxError, NameError, TypeError):
            names[name] = eval(text, PLAIN)
    assert eval(row["because"], PLAIN | names)


def ink(png: bytes, box: tuple[float, float, float, float] = (0, 0, 1, 1)) -> float:
    """Return how much of a part of a picture, given in shares of its sides, is not white."""
    image = pytest.importorskip("PIL.Image").open(io.BytesIO(png)).convert("L")
    sides = (image.width, image.height) * 2
    part = image.crop([round(share * side) for share, side in zip(box, sides, strict=True)])
    return 1 - sum(part.histogram()[250:]) / (part.width * part.height)


TITLE = (0, 0.02, 1, 0.11)
DRAWINGS = [
    "plot(sin(x), (x, -5, 5))",
    "plt.plot([1, 2, 3])",
    "plt.plot([1, 2, 3])\nplt.show()",
    "plt.hist([1, 2, 2, 3])",
    "plt.bar(['a', 'b'], [3, 1])",
    "plt.pie([30, 70], labels=['да', 'нет'])",
    "plt.boxplot([1, 2, 5])",
    "plt.scatter([1, 2], [3, 4])\nplt.xlim(0, 3)",
    "fig, ax = plt.subplots()\nax.plot([1, 2])\nfig",
    "plt.style.use('ggplot')\nplt.imshow(np.eye(4), cmap='gray')",
    "from mpl_toolkits.mplot3d import Axes3D\nax = plt.figure().add_subplot(projection='3d')\n"
    "X, Y = np.meshgrid(np.arange(9), np.arange(9))\nax.plot_surface(X, Y, X * Y)",
    "plot3d(x*y, (x, -2, 2), (y, -2, 2))",
    "plot_implicit(x**2 + y**2 - 1)",
    "plot_parametric(cos(t), sin(t), (t, 0, 2*pi))",
    "plt.barh(['яблоки', 'груши'], [3, 5])",
    "plt.semilogy([1, 10, 100])",
    "plt.loglog([1, 10, 100], [1, 100, 10000], 'o-')\nplt.grid(True, which='both')",
    "fig, axs = plt.subplots(2, 2)\nfor k, ax in enumerate(axs.flat): ax.plot(np.arange(9)**k)",
    "X, Y = np.meshgrid(np.arange(9), np.arange(9))\nplt.contourf(X, Y, X*Y)\nplt.colorbar()",
    "plt.subplot(projection='polar').plot(np.arange(9))",
    "plt.errorbar([1, 2, 3], [2, 4, 5], yerr=0.5)",
    "plt.fill_between([0, 1, 2], [0, 2, 1])",
    "plt.stem([3, 1, 2])",
    "plt.quiver([0, 1], [0, 1], [1, 0], [0, 1])",
    "ax = plt.gca()\nax.plot([1, 2, 3])\nax.twinx().plot([9, 5, 2], 'r')",
    "from datetime import date\nplt.plot([date(2026, 1, 1), date(2026, 2, 1)], [1, 3])\n"
    "plt.gcf().autofmt_xdate()",
    "with plt.xkcd(): plt.plot([1, 3, 2])",
    "fig, axes = plt.subplots()\naxes.plot([1, 2, 3])\naxes.set_xlim(0, 4)",
]


@pytest.mark.parametrize("source", DRAWINGS)
def test_what_is_drawn_is_a_picture_and_says_nothing(maths: Sandbox, source: str) -> None:
    outcome = maths.run(source)
    assert (outcome.kind, outcome.output, outcome.warning) == ("ok", "", ""), outcome
    [picture] = outcome.pictures
    assert (picture.width, picture.height) == (640, 480)
    assert ink(picture.png) > 0.01
    assert ink(picture.png, TITLE) < 0.01 or "3d" in source or "sin" in source


def test_a_curve_is_seen_beside_its_poles(maths: Sandbox) -> None:
    [picture] = maths.run("plot(1/x)").pictures
    assert ink(picture.png, (0.51, 0.1, 0.6, 0.45)) > 0.005


def test_what_stands_at_an_axis_can_be_read(maths: Sandbox) -> None:
    outcome = maths.run("plot(x)\nax = plt.gca()\nprint(ax.xaxis.label.get_ha())")
    assert outcome.output == "right\n"
    days = "dates = [dt.date(2026, 1, 1 + day) for day in range(31)]\nplt.plot(dates, range(31))\n"
    ticks = "plt.gcf().canvas.draw()\nmax(len(each.get_text()) for each in plt.xticks()[1])"
    assert int(maths.run(f"{days}{ticks}").output) <= len("Jan")


def test_a_label_that_is_longer_than_its_place_is_whole(maths: Sandbox) -> None:
    [picture] = maths.run("plt.barh(['a name that is longer than its place'], [3])").pictures
    assert picture.width > 640
    assert ink(picture.png, (0, 0, 0.005, 1)) == 0


@pytest.mark.parametrize(
    "title", ["Title", "Рост за год", "Ωμέγα", "$\\frac{1}{\\sqrt{x^2}}$", "😀"]
)
def test_titles_are_drawn_in_every_guest(maths: Sandbox, title: str) -> None:
    [picture] = maths.run(f"plt.plot([1])\nplt.title({title!r})").pictures
    assert ink(picture.png, TITLE) > 0.002


def test_chinese_is_drawn_where_a_font_has_it_and_else_that_is_said(maths: Sandbox) -> None:
    fonts = Path("/usr/share/fonts").rglob("*.tt[cf]")
    has_signs = any(re.match("wqy|NotoSansCJK|DroidSansFallback", font.name) for font in fonts)
    outcome = maths.run("plt.rcParams['font.sans-serif'] = ['SimHei']\nplt.title('汉字 y')")
    said = "" if has_signs else "No font here has 汉字: boxes stand for them."
    assert (len(outcome.pictures), outcome.warning) == (1, said)


def test_a_font_for_chinese_is_the_second_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    names = {"a.ttf": "DejaVu Sans", "b.ttc": "WenQuanYi Micro Hei", "c.ttc": "Noto Sans CJK JP"}
    fonts = [SimpleNamespace(fname=f"/f/{file}", name=name) for file, name in names.items()]
    fonts[-1].fname = "/elsewhere/c.ttc"
    manager = SimpleNamespace(fontManager=SimpleNamespace(ttflist=fonts, afmlist=[]))
    monkeypatch.setitem(sys.modules, "matplotlib.font_manager", manager)
    with matplotlib.rc_context():
        keep_readable_fonts(["/f"])
        expected = ["sans-serif", "WenQuanYi Micro Hei", "DejaVu Sans"]
        assert matplotlib.rcParams["font.family"] == expected


def test_a_value_is_shown_beside_a_picture_whatever_its_name_begins_with(maths: Sandbox) -> None:
    outcome = maths.run("plt.plot([1, 2])\nfigures = [7]\nfigures[0]")
    assert (outcome.output, len(outcome.pictures)) == ("7\n", 1)


def test_what_is_printed_and_the_value_stand_beside_the_pictures(maths: Sandbox) -> None:
    outcome = maths.run("print('two')\nplt.plot([1])\nplt.figure()\nplt.plot([2])\nnp.mean([1, 2])")
    assert (outcome.output, len(outcome.pictures)) == ("two\n1.5\n", 2)


@pytest.mark.parametrize(
    ("source", "kind", "shown", "warning"),
    [
        ("for i in range(6): plt.figure()", "ok", 4, "Only the first 4 pictures are shown."),
        ("plt.plot([1])\nplt.close()", "ok", 0, ""),
        (
            "plt.title('Ωह')\nplt.xlabel('$ह$')",
            "ok",
            1,
            "No font here has ह: boxes stand for them.",
        ),
        ("plt.plot([1])\n1/0", "error", 0, ""),
        ("plt.plot([1])\nplt.title('$x')\nplt.title('$\\\\frac{1$')", "error", 0, ""),
        (
            "class P:\n    def _repr_png_(self): return b'GIF89a'\nplt, P()\nP()",
            "ok",
            0,
            "A picture is left out: it is no PNG.",
        ),
    ],
)
def test_what_is_no_picture_is_said(
    maths: Sandbox, source: str, kind: str, shown: int, warning: str
) -> None:
    outcome = maths.run(source)
    assert (outcome.kind, len(outcome.pictures), outcome.warning) == (kind, shown, warning)


def test_a_picture_that_is_too_large_is_drawn_smaller_or_left_out(maths: Sandbox) -> None:
    noise = "plt.imshow(np.random.rand(700, 700, 3))\nplt.axis('off')\nplt.tight_layout(pad=0)\n"
    outcome = maths.run(f"plt.figure(figsize=(8, 8), dpi=100)\n{noise}")
    assert outcome.warning == ""
    assert [picture.width for picture in outcome.pictures] == [400]
    image = "Image.fromarray(numpy.random.randint(0, 255, (700, 700, 3), 'uint8'))"
    outcome = maths.run(f"import numpy\nfrom PIL import Image\n{image}", unchecked=True)
    assert outcome.pictures == ()
    assert "larger than 768 KiB" in outcome.warning


def test_a_forged_picture_is_refused_and_harms_nobody(maths: Sandbox) -> None:
    for written in ("b'x'", "(9).to_bytes(4, 'little') + b'123456789'", "b'\\xff' * 9"):
        source = f"import os, struct, numpy\npictures = {written}\nos.write(1, pictures)\n"
        source += "os.write(3, struct.pack('=BqqI', 0, 0, 0, len(pictures)))\nos._exit(0)"
        outcome = maths.run(source, unchecked=True)
        assert (outcome.kind, outcome.output, outcome.pictures) == ("ok", "", ())
    huge = "import os, struct, numpy\nos.write(1, b'text')\n"
    huge += "os.write(3, struct.pack('=BqqI', 0, 0, 0, 2**32 - 1))\nos._exit(0)"
    outcome = maths.run(huge, unchecked=True)
    assert (outcome.kind, outcome.output, outcome.pictures) == ("ok", "", ())


def test_no_program_pays_for_their_import(maths: Sandbox) -> None:
    command = [sys.executable, "-I", "-c", "import mpmath, numpy, sympy, time\n"]
    command[-1] += "print(time.process_time())"
    import_seconds = float(subprocess.run(command, check=True, capture_output=True).stdout)
    outcome = maths.run("sympy.expand((sympy.Symbol('x') + 1)**2)")
    assert outcome.output == "x**2 + 2*x + 1\n"
    assert outcome.cpu_seconds < import_seconds / 5


def test_no_program_pays_for_what_a_warm_up_program_found_out(maths: Sandbox) -> None:
    cold = Sandbox(replace(maths.policy, warm_up=()))
    cold.start()
    try:
        seconds = cold.run(INTEGRAL).cpu_seconds
    finally:
        cold.close()
    assert maths.run(INTEGRAL).cpu_seconds < seconds / 3


@pytest.mark.parametrize(
    "source",
    [
        "np.random.rand()",
        "np.random.default_rng().random()",
        "mpmath.rand()",
        "sympy.randprime(1, 10**18)",
        "sympy.randMatrix(1, 1, 0, 10**18)",
    ],
)
def test_no_two_programs_draw_the_same_numbers(maths: Sandbox, source: str) -> None:
    drawn = [maths.run(source).output for _ in range(12)]
    assert "" not in drawn
    assert len(set(drawn)) == len(drawn)


def served(sandbox: Sandbox) -> tuple[int, int]:
    """Return how many programs each of the two zygotes has served."""
    status = sandbox.status()
    return status["guests"]["served"], status["libraries"]["guests"]["served"]


def test_only_a_program_that_needs_libraries_gets_a_guest_that_has_them(maths: Sandbox) -> None:
    _, heavy = served(maths)
    for source in ("2+2", "x = 3\nx*2", "math.sqrt(2)", "1 +", "for n in range(3): print(n)"):
        maths.run(source)
    assert served(maths)[1] == heavy
    for source in ("x", "import sympy", "np.pi", "plt"):
        maths.run(source)
    assert served(maths)[1] == heavy + 4
    assert "sympy" not in maths.run("import sys\nsorted(sys.modules)", unchecked=True).output


def test_the_two_kinds_of_guests_share_slots_and_no_user_id(maths: Sandbox) -> None:
    who = "import os\nos.getuid()"
    if maths.status()["layers"].get("uid"):
        drawn = {int(maths.run(who, unchecked=True).output) for _ in range(6)}
        heavy = {int(maths.run(f"import numpy\n{who}", unchecked=True).output) for _ in range(6)}
        assert not drawn & heavy
    crowd = [
        threading.Thread(
            target=maths.run,
            args=[f"import time, {name}\ntime.sleep(0.5)"],
            kwargs={"unchecked": True},
        )
        for name in ("numpy", "math") * 4
    ]
    for thread in crowd:
        thread.start()
    while sum(running(maths)) < maths.policy.limits.concurrent_guests:
        pass
    most = max(sum(running(maths)) for _ in range(50))
    for thread in crowd:
        thread.join()
    assert most == maths.policy.limits.concurrent_guests


def running(sandbox: Sandbox) -> tuple[int, int]:
    status = sandbox.status()
    return status["guests"]["running"], status["libraries"]["guests"]["running"]


def test_without_its_libraries_a_policy_serves_what_needs_none_and_says_why(
    maths: Sandbox, caplog: pytest.LogCaptureFixture
) -> None:
    broken = replace(maths.policy, prelude=("from sympy import no_such_name",))
    sandbox = Sandbox(broken)
    sandbox.start()
    try:
        assert "no_such_name" in caplog.text
        assert sandbox.run("2+2").output == "4\n"
        outcome = sandbox.run("np.pi")
        assert (outcome.kind, outcome.error) == (
            "error",
            "the libraries that this needs are out of order",
        )
        assert sandbox.status()["serving"] is True
        assert sandbox.status()["libraries"]["serving"] is False
        assert "no_such_name" in sandbox.status()["libraries"]["reason"]
        sandbox.reload(maths.policy)
        assert sandbox.run("np.pi").output == "3.141592653589793\n"
        with pytest.raises(SandboxUnavailable, match="no_such_name"):
            sandbox.reload(broken)
        assert sandbox.run("np.pi").output == "3.141592653589793\n"
    finally:
        sandbox.close()


def test_a_warm_up_that_leaves_files_open_is_refused_by_their_names(maths: Sandbox) -> None:
    program = f"mpmath.mp.kept = lambdify([], 'open(\"{io.__file__}\")')()"
    _, whole = in_parts(maths.policy)
    assert whole
    with pytest.raises(SandboxUnavailable, match=f"files are left open: {re.escape(io.__file__)}"):
        ZygoteProcess(replace(whole, warm_up=(program,)))


def test_a_policy_without_libraries_is_in_one_part(policy: Policy) -> None:
    assert in_parts(policy) == (policy, None)


WALK = """
waiting, seen = [mpmath, np, plt, sympy], {}
while waiting:
    view = waiting.pop()
    if id(view) not in seen:
        seen[id(view)] = view.__name__
        waiting += [one for one in vars(view).values() if isinstance(one, type(math).__base__)]
print(" ".join({name.partition(".")[0] for name in seen.values()}))
"""


def test_no_public_name_leads_to_a_module_that_is_not_allowed(maths: Sandbox) -> None:
    found = set(maths.run(WALK, unchecked=True).output.split())
    assert found - {name.partition(".")[0] for name in maths.policy.allowed_imports} == set()
    assert {"matplotlib", "numpy", "sympy"} <= found


HOSTILE = rows("libraries.jsonl")
PRELUDE = "import mpmath, numpy, os, sympy\nnp = numpy\n"


def test_hostile_programs_are_contained(maths: Sandbox) -> None:
    for row in HOSTILE:
        outcome = maths.run(PRELUDE + row["source"], unchecked=True)
        assert outcome.kind in ("ok", "error"), (row, outcome)
        assert "REACHED" not in outcome.output, (row, outcome)


def test_what_the_checker_cannot_see_is_contained(maths: Sandbox) -> None:
    for row in HOSTILE:
        outcome = maths.run(row["source"])
        assert outcome.kind == ("rejected" if row["checker"] == "reject" else "error"), row
        assert "REACHED" not in outcome.output, row


def test_without_the_layers_all_of_them_would_reach_it(maths: Sandbox) -> None:
    with guests(maths.policy, "uid", "rlimits", "landlock", "seccomp", "namespaces") as open_:
        for row in HOSTILE:
            assert "REACHED" in open_.run_source(PRELUDE + row["source"]).output, row


def test_the_lint_has_nothing_more_to_say_of_the_policy(maths: Sandbox) -> None:
    of_the_machine = "memory-overcommit,path-missing,uid-taken"
    assert lint.main([str(maths.policy.path), "--strict", "--ignore", of_the_machine]) == 0
