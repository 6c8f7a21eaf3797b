"""A headless Chromium for tests, controlled through its DevTools protocol over a pipe."""

import base64
import json
import os
import select
import shutil
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from helpers.platforms import windows

_WAIT = 60.0  # seconds for one answer, on a busy machine


def chromium() -> str | None:
    """Return the path of Chromium; None if it is not installed or cannot be controlled here."""
    if windows:  # where a process inherits no open pipes
        return None
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Browser:
    """One headless Chromium with one page; a context manager."""

    def __init__(self, profile: Path, *, width: int = 1280, height: int = 900) -> None:
        command = chromium()
        assert command is not None
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        options = (
            "--headless=new --no-sandbox --disable-gpu --no-first-run --disable-extensions "
            "--disable-background-networking --hide-scrollbars --remote-debugging-pipe "
            f"--user-data-dir={profile} --window-size={width},{height}"
        )
        # the browser reads commands from file 3 and writes answers to file 4
        shell = f'exec "$0" {options} about:blank 3<&{to_read} 4>&{to_write}'
        self._process = subprocess.Popen(  # noqa: S603
            ["bash", "-c", shell, command],  # noqa: S607
            pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self._rest = b""
        self._number = 0
        self.events: list[dict[str, Any]] = []
        target = self._call("Target.createTarget", {"url": "about:blank"})["targetId"]
        attached = self._call("Target.attachToTarget", {"targetId": target, "flatten": True})
        self._session: str | None = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.resize(width, height)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._read)
        os.close(self._write)

    def open(self, path: Path, fragment: str = "") -> None:
        """Load a file, and wait until it has drawn itself."""
        self.call("Page.navigate", url="about:blank")  # another fragment alone would not load it again
        self.evaluate("1")
        self.events.clear()
        self.call("Page.navigate", url=path.resolve().as_uri() + fragment)
        while all(event["method"] != "Page.loadEventFired" for event in self.events):
            self._receive()

    def evaluate(self, script: str) -> Any:
        """Return the value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def press(self, key: str, *, shift: bool = False) -> None:
        """Press and let go of a key, as a person does."""
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, "End": 35}
        codes |= {"ArrowLeft": 37, "ArrowRight": 39, "ArrowDown": 40}
        what: dict[str, Any] = {
            "key": key, "code": key, "windowsVirtualKeyCode": codes[key], "modifiers": 8 * shift,
        }  # fmt: skip
        if key == "Enter":
            what["text"] = "\r"
        self.call("Input.dispatchKeyEvent", type="keyDown", **what)
        self.call("Input.dispatchKeyEvent", type="keyUp", **what)

    def point(self, selector: str, x: float = 0.5, y: float = 0.5) -> None:
        """Move the pointer over an element, at a share of its width and height."""
        box = self.evaluate(
            f"(async () => {{const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center', behavior: 'instant'});"
            "await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));"
            "const b = e.getBoundingClientRect(); return [b.x, b.y, b.width, b.height]})()"
        )
        place = {"x": box[0] + x * box[2], "y": box[1] + y * box[3]}
        self.call("Input.dispatchMouseEvent", type="mouseMoved", **place)

    def troubles(self) -> list[str]:
        """Return every error or warning that the page has caused."""
        self.evaluate("1")  # the answer comes after the reports of everything before
        found = []
        for event in self.events:
            details = event.get("params", {})
            if event["method"] == "Runtime.exceptionThrown":
                found.append(str(details["exceptionDetails"]))
            if event["method"] == "Runtime.consoleAPICalled" and details["type"] in ("error", "warning"):
                found.append(str(details["args"]))
            if event["method"] == "Log.entryAdded" and details["entry"]["level"] in ("error", "warning"):
                found.append(details["entry"]["text"])
        return found

    def requests(self) -> list[str]:
        """Return every URL that the page requested, data URLs excepted."""
        addresses = [
            str(event["params"]["request"]["url"])
            for event in self.events
            if event["method"] == "Network.requestWillBeSent"
        ]
        return [address for address in addresses if not address.startswith("data:")]

    def resize(self, width: int, height: int = 900) -> None:
        """Set the size of the window."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip

    def prefer(self, scheme: str) -> None:
        """Set the preferred colour scheme, light or dark."""
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )

    def screenshot(self, path: Path) -> None:
        """Save a picture of the visible page."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send one command to the page and return its answer."""
        return self._call(method, params, self._session)

    def _call(self, method: str, params: dict[str, Any], session: str | None = None) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer["error"])
                result: dict[str, Any] = answer["result"]
                return result

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], _WAIT)
            assert ready, "the browser does not answer"
            more = os.read(self._read, 1 << 20)
            assert more, "the browser has ended"
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        if "id" not in message:
            self.events.append(message)
        return message


def click(page: Browser, selector: str, number: int = 0) -> None:
    """Click the element with this number among those that a selector chooses."""
    page.evaluate(f"document.querySelectorAll({selector!r})[{number}].click()")


def every(page: Browser, selector: str, condition: str) -> int:
    """Fail unless an expression is true of every element `e`; return how many there are."""
    elements = f"[...document.querySelectorAll({selector!r})]"
    wrong = page.evaluate(f"{elements}.filter(e => !({condition})).map(e => e.outerHTML.slice(0, 200))")
    assert wrong == [], (selector, condition)
    return int(page.evaluate(f"{elements}.length"))


CONTRASTS = """(selector) => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = (c) => (c <= 10 ? c / 3294.6 : ((c / 255 + 0.055) / 1.055) ** 2.4);
  const luminance = ([r, g, b]) => 0.2126 * light(r) + 0.7152 * light(g) + 0.0722 * light(b);
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const [r, g, b, alpha = 1] = parse(getComputedStyle(e).backgroundColor);
      if (alpha > 0) return [r, g, b];
    }
  };
  const opacity = (e) => (e ? Number(getComputedStyle(e).opacity) * opacity(e.parentElement) : 1);
  const holders = [...document.querySelectorAll(selector)].filter((e) =>
    e.checkVisibility() && [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()));
  return holders.map((e) => {
    const style = getComputedStyle(e);
    const back = behind(e), share = opacity(e);
    const colour = parse(e instanceof SVGElement ? style.fill : style.color).slice(0, 3);
    const mixed = colour.map((c, i) => share * c + (1 - share) * back[i]);
    const [a, b] = [luminance(mixed), luminance(back)];
    return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), e.outerHTML.slice(0, 120)];
  });
}"""


def contrasts(page: Browser, selector: str) -> list[tuple[float, str]]:
    """Return the contrast of every visible text with what is behind it, and its element."""
    found = page.evaluate(f"({CONTRASTS})({json.dumps(selector)})")
    return [(float(contrast), str(text)) for contrast, text in found]


def choose(page: Browser, name: str, value: str) -> None:
    """Choose a value of a select element."""
    page.evaluate(
        f"(() => {{const s = document.getElementById({name!r}); s.value = {value!r};"
        "s.dispatchEvent(new Event('change'))})()"
    )
