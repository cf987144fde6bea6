"""The bot under the policy that has libraries: what a chat is shown."""

import json

import pytest
from falcon import testing

from function.answers.sentences import about
from function.app import create_app
from function.parts import text_of
from function.settings import Settings
from function.state.memory import Memory
from sandbox.sandbox import Sandbox
from tests import bot_api_server
from tests.conftest import message


@pytest.fixture
def app(maths: Sandbox) -> testing.TestClient:
    return testing.TestClient(create_app(Settings(), maths, Memory()))


@pytest.mark.parametrize(
    ("program", "answer"),
    [
        ("sqrt(8)", "2*sqrt(2) ≈ 2.8284271247 = sqrt(8)"),
        ("integrate(sin(x)**2, x)", "x/2 - sin(x)*cos(x)/2 = integrate(sin(x)**2, x)"),
        ("Matrix([[1, 2], [3, 4]]).inv()", "⎡-2    1  ⎤\n⎢         ⎥\n⎣3/2  -1/2⎦"),
        ("2+2", "4 = 2+2"),
        ("sqrt(8)\nx**2\nNone\n2+2", "2*sqrt(2) ≈ 2.8284271247\nx**2\n4"),
    ],
)
def test_algebra_is_answered(app: testing.TestClient, program: str, answer: str) -> None:
    assert app.simulate_post("/message", json=message(program)).json["body"] == answer


def test_a_plot_is_a_photo_that_the_server_takes(app: testing.TestClient) -> None:
    update = {"update_id": 1, "message": message("plt.plot([1, 2, 3])\nplt.show()")}
    result = app.simulate_post("/webhook", json=update)
    params, files = bot_api_server.read_body(result.headers["content-type"], result.content)
    method = params.pop("method")
    assert method == "sendPhoto"
    assert bot_api_server.problems(method, params, tuple(files)) == []
    assert "caption" not in params
    assert files["photo"][1].startswith(b"\x89PNG")


def test_a_plot_that_is_saved_gets_a_hint(app: testing.TestClient) -> None:
    said = app.simulate_post("/message", json=message("plt.plot([1])\nplt.savefig('a.png')")).json
    assert "Leave out savefig" in said["body"]


@pytest.mark.parametrize(
    ("program", "hint"),
    [
        ("np.loadtxt('a.txt')", "There are no files here; paste the numbers"),
        ("integrate(x**2, 0, 1)", "in brackets, as in integrate(x**2, (x, 0, 1))"),
        ("det([[1, 2], [3, 4]])", "A matrix is written Matrix([[1, 2], [3, 4]])"),
        ("solve(abs(x - 3) - 5)", "x = symbols('x', real=True)"),
        ("solve(x**x - x - 3)", "near a guess is found by nsolve("),
        ("plt.plot(x, x**2)", "A symbol stands for no number"),
        ("import matplotlib.animation", "may not be imported here; allowed: "),
    ],
)
def test_what_goes_wrong_is_told_with_its_cure(
    app: testing.TestClient, program: str, hint: str
) -> None:
    assert hint in app.simulate_post("/message", json=message(program)).json["body"]


def test_help_shows_what_the_policy_can_do(maths: Sandbox, policy: object) -> None:
    assert "plt.plot(" in text_of(about("help", maths.policy, None))
    assert "integrate(" in text_of(about("help", maths.policy, None))


def test_health_knows_both_zygotes(app: testing.TestClient) -> None:
    found = json.dumps(app.simulate_get("/health", remote_addr="127.0.0.1").json)
    assert '"libraries": {"serving": true' in found
