"""A Chromium, the system's or Playwright's own, driven by Playwright; without one the tests are skipped."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (`make test` does)")
    with playwright.sync_playwright() as driver:
        found = [*filter(None, map(shutil.which, PROGRAMS)), driver.chromium.executable_path]
        program = next((path for path in found if Path(path).is_file()), None)
        if program is None:
            pytest.skip("no Chromium found: `apt install chromium` or `playwright install chromium` provides one")
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


class Opened:
    """A page in the browser, and all that it complained about or asked for."""

    def __init__(self, browser: Any, file: Path, **context: Any) -> None:
        self.context = browser.new_context(**context)
        self.page = self.context.new_page()
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.errors.append(message.text))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.errors.append(dialog.message), dialog.dismiss()))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(file.as_uri())


@pytest.fixture
def opened(chromium: Any) -> Iterator[Any]:
    contexts = []

    def open_file(file: Path, width: int = 1200, **context: Any) -> Opened:
        found = Opened(chromium, file, viewport={"width": width, "height": 800}, **context)
        contexts.append(found.context)
        return found

    yield open_file
    for context in contexts:
        context.close()
