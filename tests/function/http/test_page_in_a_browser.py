"""The page as people use it, in headless Chromium (Debian: chromium and chromium-driver)."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from tests.conftest import Service

DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(DRIVER is None, reason="needs chromium-driver (apt-get install)")
HOSTILE = r"""
print("<img src=x onerror=alert(1)><script>document.title = 'taken'</script><b>bold</b>")
print("\u202eRTL", "\x1b[31mred", "\x07\x00", "&lt;i&gt;", "[a](javascript:alert(1))")
print("<i>" * 20000)
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    options = webdriver.ChromeOptions()
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    for argument in (
        *("headless=new", "no-sandbox", "disable-gpu", "no-first-run", "window-size=900,800"),
        *("disable-background-networking", "disable-component-update", "disable-sync"),
        f"user-data-dir={tmp_path_factory.mktemp('profile')}",
    ):
        options.add_argument(f"--{argument}")
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


class Console:
    """One tab of the page: a person types, runs and reads."""

    def __init__(self, browser: webdriver.Chrome, url: str) -> None:
        self.browser = browser
        browser.get(url)
        browser.execute_script("sessionStorage.clear()")
        browser.get(url)

    @property
    def program(self) -> WebElement:
        return self.browser.find_element(By.ID, "program")

    def articles(self) -> list[WebElement]:
        return self.browser.find_elements(By.CSS_SELECTOR, "#log article")

    def type(self, text: str) -> None:
        self.browser.execute_script("arguments[0].value = arguments[1]", self.program, text)

    def wait(self, condition: Callable[[], Any]) -> None:
        WebDriverWait(self.browser, 30, 0.02).until(lambda _: condition())

    def ask(self, text: str) -> str:
        before = len(self.articles())
        self.type(text)
        self.program.send_keys(Keys.CONTROL, Keys.ENTER)
        self.wait(lambda: len(self.articles()) > before)
        return self.articles()[-1].find_element(By.CSS_SELECTOR, ".answer").text

    def shown(self, name: str) -> bool:
        return self.browser.find_element(By.ID, name).is_displayed()


@pytest.fixture
def console(browser: webdriver.Chrome, service: Service) -> Console:
    return Console(browser, service.url)


@pytest.mark.parametrize(
    ("program", "answer"),
    [
        ("2+2", "4 = 2+2"),
        ("for i in range(3):\n    print(i)", "0\n1\n2"),
        ("1/0", "ZeroDivisionError: division by zero"),
        ("import os", "Not run: os may not be imported here"),
        ("x = (", "'(' was never closed"),
    ],
)
def test_control_and_enter_runs_a_program_and_shows_its_answer(
    console: Console, program: str, answer: str
) -> None:
    assert answer in console.ask(program)
    assert console.program.get_attribute("value") == ""


def test_the_last_answer_has_a_name(console: Console) -> None:
    console.ask("6*7")
    assert console.ask("_ + 1").startswith("43")


def test_a_program_that_asks_is_given_the_next_text(console: Console) -> None:
    assert "Name?" in console.ask("name = input('Name? ')\nprint('Hello', name)")
    label = console.browser.find_element(By.ID, "prompt").get_attribute("textContent")
    assert "Name?" in label
    assert "Hello Ada" in console.ask("Ada")
    assert console.browser.find_element(By.ID, "prompt").get_attribute("textContent") == "Program"


def test_an_example_is_put_where_it_can_be_changed_and_run(console: Console) -> None:
    console.browser.find_element(By.CSS_SELECTOR, "#examples button").click()
    assert console.program.get_attribute("value") == "2+2"
    console.browser.find_element(By.ID, "run").click()
    console.wait(console.articles)
    assert "4 = 2+2" in console.articles()[-1].text


def test_code_in_an_answer_is_monospaced(console: Console) -> None:
    console.ask("2+2")
    assert console.articles()[-1].find_element(By.CSS_SELECTOR, ".answer code").text == "4 = 2+2"


def test_what_a_hostile_program_prints_is_text_and_nothing_else(console: Console) -> None:
    title = console.browser.title
    assert "<script>document.title = 'taken'</script><b>bold</b>" in console.ask(HOSTILE)
    assert console.browser.title == title
    answer = console.articles()[-1].find_element(By.CSS_SELECTOR, ".answer")
    assert answer.find_elements(By.CSS_SELECTOR, "img, script, b, i, a") == []


def test_every_request_goes_to_the_pages_own_origin(console: Console, service: Service) -> None:
    console.browser.get_log("performance")
    console.browser.refresh()
    console.ask("2+2")
    sent = [
        event["message"]["params"]["request"]["url"]
        for event in map(json.loads, (e["message"] for e in console.browser.get_log("performance")))
        if event["message"]["method"] == "Network.requestWillBeSent"
    ]
    assert f"{service.url}/message" in sent
    assert [url for url in sent if not url.startswith((service.url, "data:"))] == []


def test_pictures_are_shown_and_have_a_name(console: Console) -> None:
    dot = (  # one pixel
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    )
    shown = "keep({program: 'f()', pictures: [{type: 'image/png', data: arguments[0]}]})"
    console.browser.execute_script(shown, dot)
    [image] = console.articles()[-1].find_elements(By.TAG_NAME, "img")
    console.wait(lambda: image.get_property("naturalWidth") == 1)
    assert image.accessible_name == "Picture 1 of the answer"


def test_the_tab_keeps_its_history(console: Console) -> None:
    console.ask("6*7")
    console.browser.refresh()
    assert "42 = 6*7" in console.articles()[-1].text
    console.program.send_keys(Keys.ALT, Keys.ARROW_UP)
    assert console.program.get_attribute("value") == "6*7"
    console.browser.find_element(By.ID, "clear").click()
    assert console.articles() == []


def test_long_work_shows_that_it_runs_and_can_be_given_up(console: Console) -> None:
    console.type("import itertools\nfor i in itertools.count(): pass")
    console.program.send_keys(Keys.CONTROL, Keys.ENTER)
    console.wait(lambda: "Running" in console.browser.find_element(By.ID, "state").text)
    console.browser.find_element(By.ID, "stop").click()
    console.wait(console.articles)
    assert "Given up" in console.articles()[-1].text
    assert not console.shown("stop")
    assert "4 = 2+2" in console.ask("2+2")


def test_the_keyboard_alone_reaches_everything(console: Console) -> None:
    assert console.browser.switch_to.active_element == console.program  # ready to type
    console.ask("2+2")
    reached = set()
    for _ in range(30):
        console.browser.switch_to.active_element.send_keys(Keys.TAB)
        active = console.browser.switch_to.active_element
        reached.add(active.get_attribute("id") or active.text)
    assert {"run", "clear", "program", "log", "Edit"} <= reached


def test_every_control_has_a_name_for_a_screen_reader(console: Console) -> None:
    console.ask("2+2")
    for control in console.browser.find_elements(By.CSS_SELECTOR, "button, textarea, input"):
        if control.is_displayed():
            assert control.accessible_name, control.get_attribute("outerHTML")


def test_a_new_line_keeps_the_indentation(console: Console) -> None:
    console.program.send_keys("if 1:", Keys.ENTER, "a = 5", Keys.ENTER, "a")
    assert console.program.get_attribute("value") == "if 1:\n    a = 5\n    a"


def test_a_secret_is_asked_for_and_sent(
    browser: webdriver.Chrome, start_service: Callable[..., Service], tmp_path: Path
) -> None:
    config = tmp_path / "config.json"
    config.write_text('{"TOKEN": "7100000001:%s", "WEBHOOK_SECRET": "open-sesame"}' % ("A" * 35))
    url = start_service(CONFIG_PATH=str(config)).url
    console = Console(browser, url)
    assert console.shown("secret")
    console.type("2+2")
    console.program.send_keys(Keys.CONTROL, Keys.ENTER)
    console.wait(lambda: console.shown("notice"))
    assert "secret" in console.browser.find_element(By.ID, "notice").text
    console.browser.find_element(By.ID, "secret").send_keys("open-sesame")
    assert console.ask("2+2") == "4 = 2+2"


def test_the_browser_has_nothing_to_complain_of(console: Console) -> None:
    console.browser.get_log("browser")
    console.ask("2+2")
    assert [
        e for e in console.browser.get_log("browser") if e["level"] in ("SEVERE", "WARNING")
    ] == []
