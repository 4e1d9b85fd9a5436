"""The dashboard in a browser: a query is submitted, its results come, it is stopped; what strangers write is text."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from tests.service.support import EX, N_TRIPLES, READINGS, reading
from tests.support.servers import missing, needed_module

TOKEN = "a token of the test 123"
FAULTY = f"PREFIX : <{EX}>\nSELECT ?s {{\n STREAM :readings [RANGE] {{ ?s :t ?t }}\n}}"
HOSTILE = "<script>document.title = 'taken over'</script><img src=x onerror=\"document.title = 'taken over'\">"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server in a process of its own: the library has one application in each."""
    needed_module("nicegui", "dashboard")
    folder = tmp_path_factory.mktemp("service")
    (folder / "token").write_text(TOKEN)
    options = ("--data", folder / "data", "--port", "0", "--token-file", folder / "token")
    command = [sys.executable, "-m", "cqels_py", "serve", *map(str, options)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        lines = []
        for line in process.stderr:
            lines.append(line)
            if " at http" in line:
                break
        assert lines and " at http" in lines[-1], lines
        yield lines[-1].split()[-1]
        process.terminate()
        assert process.wait(60) == 0


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = needed_module("playwright.sync_api", "dev")
    path = shutil.which("chromium") or missing("chromium", "apt-get install chromium")
    with playwright.sync_playwright() as found:
        started = found.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield started
        started.close()


@contextmanager
def page_of(browser: Any, address: str) -> Iterator[Any]:
    """A page of a browser that has signed in. Nothing was loaded from elsewhere, and no script failed."""
    context = browser.new_context()
    page = context.new_page()
    elsewhere, failures = [], []
    page.on("request", lambda request: request.url.startswith((address, "data:")) or elsewhere.append(request.url))
    page.on("pageerror", lambda error: failures.append(str(error)))
    page.goto(f"{address}/")
    page.get_by_label("Token of the server").fill(TOKEN)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("heading", name="Queries").wait_for()
    yield page
    assert (elsewhere, failures) == ([], [])
    context.close()


@pytest.fixture
def client(address: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=address, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60) as found:
        found.put("/streams/readings", json={"iri": READINGS})
        yield found


def edit(page: Any, text: str) -> None:
    editor = page.locator(".cm-content")
    editor.click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)


def test_a_query_is_submitted_watched_and_stopped(browser: Any, address: str, client: httpx.Client) -> None:
    with page_of(browser, address) as page:
        page.get_by_role("link", name="New query").click()
        page.get_by_label("Name").fill("warm")
        edit(page, f"PREFIX : <{EX}>\nSELECT ?s ?t {{ STREAM :readings [RANGE 1h] {{ ?s :t ?t }} }}")
        page.get_by_role("button", name="Explain").click()
        page.get_by_text("memory: bounded by").wait_for()
        page.get_by_role("button", name="Submit").click()
        page.get_by_role("heading", name="warm").wait_for()
        client.post("/streams/readings", content=reading("s7", 21.5), headers={"Content-Type": N_TRIPLES})
        page.get_by_role("cell", name=f"{EX}s7").wait_for()
        assert page.get_by_role("cell", name="21.5").is_visible()
        page.get_by_text("Operators, with rows").click()
        page.get_by_text("rows out").wait_for()
        page.get_by_role("button", name="Pause").click()
        page.get_by_text("paused").wait_for()
        page.get_by_role("button", name="Stop", exact=True).click()
        page.get_by_role("button", name="Stop it").click()
        page.get_by_role("heading", name="Streams").wait_for()
    assert client.get("/queries").json() == []


def test_an_error_is_shown_with_its_line(browser: Any, address: str) -> None:
    with page_of(browser, address) as page:
        page.get_by_role("link", name="New query").click()
        edit(page, FAULTY)
        page.get_by_role("button", name="Submit").click()
        page.get_by_text("line 3: expected a duration").wait_for()


def test_texts_of_clients_are_shown_as_text(browser: Any, address: str, client: httpx.Client) -> None:
    text = f"PREFIX : <{EX}> SELECT ?t {{ STREAM :readings [RANGE 1h] {{ ?s :t ?t }} }} # {HOSTILE}"
    client.put("/queries/hostile", content=text, headers={"Content-Type": "application/sparql-query"})
    quoted = HOSTILE.replace('"', '\\"')
    client.post("/streams/readings", content=f'<{EX}a> <{EX}t> "{quoted}" .', headers={"Content-Type": N_TRIPLES})
    with page_of(browser, address) as page:
        page.goto(f"{address}/ui/queries/hostile")
        page.get_by_role("cell", name="taken over").wait_for()
        page.get_by_text("Query and plan").click()
        page.get_by_text("PREFIX : <http").wait_for()
        assert page.title() == "Query · cqels"


def test_pages_need_the_token_and_requests_get_problems(address: str) -> None:
    refused = httpx.get(f"{address}/ui/new", headers={"Accept": "text/html"})
    assert (refused.status_code, refused.headers["Location"]) == (303, "/session")
    assert httpx.get(f"{address}/queries").status_code == 401
    assert httpx.get(f"{address}/_nicegui_ws/socket.io/", params={"EIO": 4, "transport": "polling"}).status_code == 401
