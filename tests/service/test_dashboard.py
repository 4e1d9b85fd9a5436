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

from tests.service.support import EX, N_TRIPLES, QUERY, READINGS, reading
from tests.support.servers import missing, needed_module, wait_until

TOKEN = "a token of the test 123"
FAULTY = f"PREFIX : <{EX}>\nSELECT ?s {{\n STREAM :readings [RANGE] {{ ?s :t ?t }}\n}}"
SOSA = "http://www.w3.org/ns/sosa/"
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
    """A page of a browser that has signed in. Nothing was loaded from elsewhere or refused by the policy, and no script failed."""
    context = browser.new_context()
    page = context.new_page()
    elsewhere, failures = [], []
    page.on("request", lambda request: request.url.startswith((address, "data:")) or elsewhere.append(request.url))
    page.on("pageerror", lambda error: failures.append(str(error)))
    page.on("console", lambda said: "Content Security Policy" in said.text and failures.append(said.text))
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
    editor.focus()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)


def test_a_query_is_submitted_watched_and_stopped(browser: Any, address: str, client: httpx.Client) -> None:
    with page_of(browser, address) as page:
        page.get_by_role("link", name="New query").click()
        page.get_by_label("Name").fill("warm")
        edit(page, f"PREFIX : <{EX}>\nSELECT ?s ?t {{ STREAM :readings [RANGE 1h] {{ ?s :t ?t }} }}")
        page.get_by_role("button", name="Explain").click()
        page.get_by_text("Memory: bounded by").first.wait_for()
        page.get_by_role("img", name="SELECT ?s ?t, delivered as ISTREAM").wait_for()
        page.get_by_role("button", name="Submit").click()
        page.get_by_role("heading", name="warm").wait_for()
        client.post("/streams/readings", content=reading("s7", 21.5), headers={"Content-Type": N_TRIPLES})
        page.get_by_role("cell", name=":s7").wait_for()
        assert page.get_by_role("cell", name="21.5").is_visible()
        page.locator("svg.plan").get_by_text("1 in, 1 out").first.wait_for()
        page.get_by_role("img", name="Values of results over time").wait_for()
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
        assert page.locator(".cqels-faulty-line").inner_text().strip().startswith("STREAM :readings [RANGE]")
        assert page.locator(".cqels-faulty").inner_text() == "]"
        color = "getComputedStyle(document.querySelector('.cqels-error')).color"
        light = page.evaluate(color)
        page.emulate_media(color_scheme="dark")
        page.locator("body.body--dark").wait_for()
        assert [light, page.evaluate(color)] == ["rgb(179, 32, 47)", "rgb(255, 138, 148)"]


def test_a_query_is_tried_on_a_sample(browser: Any, address: str, client: httpx.Client) -> None:
    client.post("/streams/readings", content=reading("s8", 8.5), headers={"Content-Type": N_TRIPLES})
    with page_of(browser, address) as page:
        page.goto(f"{address}/ui/new")
        edit(page, f"PREFIX : <{EX}>\nSELECT ?s ?t {{ STREAM :readings [RANGE 1h] {{ ?s :t ?t }} }}")
        page.get_by_role("button", name="Try out").click()
        page.get_by_role("cell", name="8.5").wait_for()
        page.get_by_text("Sample of").click()
        page.get_by_label(f"Elements of {READINGS}").fill(f'<{EX}pasted> <{EX}t> "9"')
        page.get_by_role("button", name="Try out").click()
        page.get_by_role("alert").get_by_text("line 1").wait_for()
        page.get_by_label(f"Elements of {READINGS}").fill(f'<{EX}pasted> <{EX}t> "9" .')
        page.get_by_role("button", name="Try out").click()
        page.get_by_role("cell", name=":pasted").wait_for()
        page.get_by_text("1 result of 1 element.").wait_for()
    assert "pasted" not in client.get("/queries").text


def completed(page: Any, text: str) -> list[str]:
    """The words that the editor offers behind a text."""
    edit(page, text)
    page.keyboard.press("Control+Space")
    page.locator(".cm-tooltip-autocomplete li").first.wait_for()
    return [str(label) for label in page.locator(".cm-completionLabel").all_inner_texts()]


def choose(page: Any) -> None:
    """Take the first word; the editor passes over a key that comes just when the list does."""
    page.wait_for_timeout(200)
    page.keyboard.press("Enter")


def test_words_are_completed(browser: Any, address: str, client: httpx.Client) -> None:
    client.post("/streams/readings", content=reading("s1", 1), headers={"Content-Type": N_TRIPLES})
    with page_of(browser, address) as page:
        page.get_by_role("link", name="New query").click()
        start = f"PREFIX : <{EX}>\nPREFIX other: <http://other.org/>\n"
        assert completed(page, f"{start}SELECT ?one {{ STREAM ") == [":readings"]
        assert completed(page, "SELECT * { STREAM ") == [f"<{READINGS}>"]
        assert ":t" in completed(page, f"{start}SELECT ?one {{ STREAM :readings [RANGE 1m] {{ ?s :")
        assert completed(page, f"{start}SELECT ?one ?two {{ FILTER(?o") == ["?one"]
        assert "TUMBLING" in completed(page, "SELECT * { STREAM :readings [TU")
        assert f"<{EX}t>" in completed(page, "ASK { ?s <")
        assert f"sosa: <{SOSA}>" in completed(page, "PREFIX so")
        assert completed(page, f"{start}SELECT * {{ STREAM :rea") == [":readings"]
        choose(page)
        assert page.locator(".cm-line").last.inner_text() == "SELECT * { STREAM :readings"
        assert "xsd:" in completed(page, "ASK { ?s xs")
        choose(page)
        assert page.locator(".cm-line").all_inner_texts() == [
            "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>",
            "ASK { ?s xsd:",
        ]
        client.put("/streams/later", json={"iri": f"{EX}later"}).raise_for_status()
        wait_until(lambda: f"<{EX}later>" in completed(page, "SELECT * { STREAM "), "the stream that is new")
    client.delete("/streams/later").raise_for_status()


def test_the_editor_follows_the_mode_and_can_be_left_by_keys(browser: Any, address: str) -> None:
    with page_of(browser, address) as page:
        page.emulate_media(color_scheme="dark")
        page.goto(f"{address}/ui/new")
        editor = page.get_by_label("Query text")
        editor.click()
        dark, light = "rgb(40, 44, 52)", "rgb(255, 255, 255)"
        colour = "document.querySelector('.cm-editor').computedStyleMap().get('background-color').toString()"
        page.wait_for_function(f"{colour} == '{dark}'")
        page.emulate_media(color_scheme="light")
        page.wait_for_function(f"{colour} == '{light}'")
        page.keyboard.press("Escape")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.closest('.cm-editor')") is None


def test_texts_of_clients_are_shown_as_text(browser: Any, address: str, client: httpx.Client) -> None:
    text = f"PREFIX : <{EX}> SELECT ?t {{ STREAM :readings [RANGE 1h] {{ ?s :t ?t }} }} # {HOSTILE}"
    client.put("/queries/hostile", content=text, headers={"Content-Type": "application/sparql-query"})
    quoted = HOSTILE.replace('"', '\\"')
    client.post("/streams/readings", content=f'<{EX}a> <{EX}t> "{quoted}" .', headers={"Content-Type": N_TRIPLES})
    with page_of(browser, address) as page:
        page.goto(f"{address}/ui/queries/hostile")
        page.get_by_role("cell", name="taken over").wait_for()
        page.get_by_text("The text of the query").click()
        page.get_by_text("PREFIX : <http").wait_for()
        assert page.title() == "Query · cqels"
        page.goto(f"{address}/ui/streams/readings")
        page.get_by_role("cell", name="taken over").wait_for()
        assert page.title() == "Stream · cqels"


def test_a_stream_shows_its_last_elements_and_those_that_were_left_out(
    browser: Any, address: str, client: httpx.Client
) -> None:
    client.put("/streams/timed", json={"iri": f"{EX}timed", "clock": "events"})
    client.put(
        "/queries/timed",
        content=f"SELECT * {{ STREAM <{EX}timed> [NOW] {{ ?s ?p ?o }} }}",
        headers={"Content-Type": QUERY},
    )
    rows = "time,subject,predicate,object\n" + "".join(
        f"{second},<{EX}e{second}>,<{EX}t>,<{EX}o>\n" for second in (5, 9, 2)
    )
    with page_of(browser, address) as page:
        page.get_by_role("link", name="timed", exact=True).last.click()
        page.get_by_text("No element yet").wait_for()
        client.post("/streams/timed", content=rows, headers={"Content-Type": "text/csv"})
        page.get_by_text(f"<{EX}e9> <{EX}t> <{EX}o> .").wait_for()
        page.get_by_role("cell", name="late", exact=True).wait_for()
        page.get_by_text("3 elements · ").wait_for()
        page.get_by_role("button", name="Remove").click()
        page.get_by_role("button", name="Remove it").click()
        page.get_by_text("is read by the queries timed").wait_for()
    client.delete("/queries/timed")
    client.delete("/streams/timed")


def test_pages_need_the_token_and_requests_get_problems(address: str) -> None:
    refused = httpx.get(f"{address}/ui/new", headers={"Accept": "text/html"})
    assert (refused.status_code, refused.headers["Location"]) == (303, "/session")
    assert httpx.get(f"{address}/queries").status_code == 401
    assert httpx.get(f"{address}/_nicegui_ws/socket.io/", params={"EIO": 4, "transport": "polling"}).status_code == 401


def test_a_stream_is_declared(browser: Any, address: str, client: httpx.Client) -> None:
    with page_of(browser, address) as page:
        page.get_by_role("link", name="New stream").click()
        page.get_by_label("Name", exact=True).fill("declared")
        page.get_by_label("IRI, by which queries name it").fill("no IRI")
        page.get_by_role("button", name="Declare").click()
        page.get_by_role("alert").get_by_text("iri is the absolute IRI").wait_for()
        page.get_by_label("IRI, by which queries name it").fill(f"{EX}declared")
        page.get_by_label("How late elements may be").fill("10s")
        page.get_by_label("JSON-LD context for plain JSON").fill('{"@vocab": "http://ex.org/"')
        page.get_by_role("button", name="Declare").click()
        page.get_by_role("alert").get_by_text("line 1: no JSON").wait_for()
        page.get_by_label("JSON-LD context for plain JSON").fill('{"@vocab": "http://ex.org/"}')
        page.get_by_role("button", name="Declare").click()
        page.get_by_role("heading", name="declared").wait_for()
    found = client.get("/streams/declared").json()
    assert (found["iri"], found["lateness"], found["context"]) == (
        f"{EX}declared",
        10_000_000,
        {"@vocab": "http://ex.org/"},
    )
    assert client.delete("/streams/declared").status_code == 204


def test_tables_fit_a_phone(browser: Any, address: str, client: httpx.Client) -> None:
    client.put("/streams/a-stream-with-a-long-name", json={"iri": f"{EX}{'a/long/path/' * 5}stream"})
    with page_of(browser, address) as page:
        page.get_by_role("cell", name=f"{EX}a/long").wait_for()
        page.set_viewport_size({"width": 390, "height": 800})
        page.get_by_role("cell", name=f"{EX}a/long").wait_for(state="hidden")
        widths = page.evaluate(
            "[...document.querySelectorAll('.q-table__middle')].map(each => [each.scrollWidth, each.clientWidth])"
        )
        assert len(widths) == 2 and all(content <= room for content, room in widths), widths
    assert client.delete("/streams/a-stream-with-a-long-name").status_code == 204
