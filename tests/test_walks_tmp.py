"""Walks on today's code."""
import json, threading
import pytest
from scripts.tooling.screenshots import LAPTOP, click_example, open_page, wait_for_figures
from tests.demos import CASES, HTTP, call
pytest_plugins = ["tests.demo_servers"]

def is_old(page): return "tm-old" in page.locator("body").get_attribute("class")
def press(page, name="Score"): page.get_by_role("button", name=name, exact=True).click()

@pytest.mark.parametrize("demo", ["vendi_embed"], indirect=True)
def test_slow_queue(demo, chromium):
    page = open_page(chromium, demo.url, LAPTOP)
    slow = ["\n".join]
    texts = [[f"word{i} " * 20 + str(i) for i in range(40)]]
    jobs = [threading.Thread(target=call, args=(demo, [texts, 1])) for _ in range(4)]
    for j in jobs: j.start()
    box = page.locator(".tm-input textarea").first
    box.fill("a cat\na dog"); press(page)
    page.wait_for_timeout(300)
    box.fill("one\ntwo\nthree"); press(page)
    for j in jobs: j.join()
    page.locator("#answer [data-value]").first.wait_for()
    page.wait_for_timeout(5000)
    shown = page.locator("#answer").inner_text()
    print("SHOWN", shown[:100], is_old(page))
    assert "of 3" in shown or is_old(page)

@pytest.mark.parametrize("demo", ["vendi_embed"], indirect=True)
def test_slider(demo, chromium):
    page = open_page(chromium, demo.url, LAPTOP)
    box = page.locator(".tm-input textarea").first
    box.fill("a cat\na dog"); press(page)
    page.locator("#answer [data-value]").first.wait_for(); wait_for_figures(page)
    box.fill("a cat\na dog\nmore")
    page.get_by_role("button", name="More settings").click(); page.wait_for_timeout(800)
    n = page.get_by_label("number input for Order q"); n.fill("2"); n.press("Enter")
    page.get_by_text("of 3", exact=False).first.wait_for()
    page.wait_for_timeout(1000)
    assert not is_old(page)

@pytest.mark.parametrize("demo", ["vendi_embed"], indirect=True)
def test_file(demo, chromium):
    page = open_page(chromium, demo.url, LAPTOP)
    page.get_by_role("tab", name="File").click()
    page.locator(".tm-input input[type=file]").set_input_files({"name": "mine.csv", "mimeType": "text/csv", "buffer": b"text\na cat\na dog\n"})
    page.get_by_text("mine").first.wait_for(); press(page, "Score the file")
    page.locator("#answer [data-value]").first.wait_for(); wait_for_figures(page)
    page.get_by_label("Clear").first.click(); page.wait_for_timeout(1500)
    assert is_old(page)

@pytest.mark.parametrize("demo", ["vendi_embed"], indirect=True)
def test_routes(demo):
    for p in ("openapi.json","gradio_api/openapi.json","gradio_api/deep_link?session_hash=s","gradio_api/deep_link/?session_hash=s","docs","redoc","gradio_api/openapi.json/", "gradio_api//deep_link?session_hash=s"):
        print(p, HTTP.get(demo.url+p).status_code, HTTP.get(demo.url+p).text[:60])
    a = call(demo, [[["a","b"]]])
    print(a)
    c = HTTP.get(demo.url+"config").json()
    assert 0
