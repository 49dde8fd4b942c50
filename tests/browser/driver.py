"""A small client of WebDriver for one headless Chromium: what the page's checks need, from the standard library alone.

Never leaves a process behind: the driver is ended with the browser, by whoever made it.
"""

import base64
import json
import os
import re
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
# What a page of ours never calls: whoever does is a stranger.
ALARMS = """
window.alarms = [];
for (const name of ["alert", "confirm", "prompt", "xss", "open", "print"])
  window[name] = (...what) => { window.alarms.push([name, ...what].map(String).join(" ")); };
addEventListener("securitypolicyviolation",
  (event) => window.alarms.push("policy " + event.violatedDirective + " " + event.blockedURI + " " + event.sample));
addEventListener("error", (event) => window.alarms.push("error " + event.message));
"""


class Refused(Exception):
    """The driver said no."""


class Browser:
    """One browser with one window."""

    def __init__(self, driver: str, browser: str, script: bool = True) -> None:
        self.process = subprocess.Popen([driver, "--port=0"], stdout=subprocess.PIPE, text=True)
        self.root = f"http://127.0.0.1:{self._port()}"
        self.calls = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        arguments = [
            "--headless=new",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-proxy-server",
            "--no-first-run",
            "--disable-background-networking",
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
            "--lang=en",
        ]
        if os.geteuid() == 0:
            # Chromium's own sandbox does not start as root; all that it is shown is our own server's.
            arguments.append("--no-sandbox")
        options: dict[str, Any] = {"binary": browser, "args": arguments}
        if not script:
            options["prefs"] = {"profile.managed_default_content_settings.javascript": 2}
        wanted = {
            "browserName": "chrome",
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"performance": "ALL", "browser": "ALL"},
            "unhandledPromptBehavior": "ignore",
        }
        made = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self.session = f"/session/{made['sessionId']}"
        if script:
            self.cdp("Page.addScriptToEvaluateOnNewDocument", source=ALARMS)

    def _port(self) -> int:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if found := re.search(r"started successfully on port (\d+)", line):
                return int(found[1])
        raise Refused("chromedriver did not start")

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.root + path, data=data, method=method)
        request.add_header("content-type", "application/json")
        try:
            with self.calls.open(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise Refused(json.load(error)["value"]["message"]) from None

    def call(self, method: str, path: str, **body: Any) -> Any:
        return self._call(method, self.session + path, body if method == "POST" else None)

    def cdp(self, command: str, **params: Any) -> Any:
        return self.call("POST", "/goog/cdp/execute", cmd=command, params=params)

    def go(self, url: str) -> None:
        self.call("POST", "/url", url=url)

    def run(self, script: str, *args: Any) -> Any:
        return self.call("POST", "/execute/sync", script=script, args=list(args))

    def wait(self, script: str, *args: Any) -> Any:
        """What the script hands to its last argument."""
        return self.call("POST", "/execute/async", script=script, args=list(args))

    def until(self, what: str, script: str, *args: Any, seconds: float = 40) -> Any:
        end = time.monotonic() + seconds
        while True:
            if found := self.run(script, *args):
                return found
            if time.monotonic() > end:
                raise AssertionError(f"never happened: {what}\n{self.run('return document.body.innerText')}")
            time.sleep(0.05)

    def press(self, *keys: str) -> None:
        """Keys one after the other, wherever the focus is."""
        names = {"Tab": "\ue004", "Enter": "\ue007", "Right": "\ue014", "Space": " "}
        actions = []
        for key in keys:
            value = names.get(key, key)
            actions += [{"type": "keyDown", "value": value}, {"type": "keyUp", "value": value}]
        self.call("POST", "/actions", actions=[{"type": "key", "id": "keys", "actions": actions}])

    def find(self, selector: str) -> str:
        return self.call("POST", "/element", using="css selector", value=selector)[ELEMENT]

    def write(self, selector: str, text: str) -> None:
        self.call("POST", f"/element/{self.find(selector)}/value", text=text)

    def click(self, selector: str) -> None:
        self.call("POST", f"/element/{self.find(selector)}/click")

    def screen(self, width: int, height: int, scheme: str) -> None:
        """So many pixels, in light or dark."""
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        features = [
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        self.cdp("Emulation.setEmulatedMedia", features=features)

    def picture(self) -> bytes:
        return base64.b64decode(self.call("GET", "/screenshot"))

    def log(self, kind: str) -> list[dict[str, Any]]:
        return self.call("POST", "/se/log", type=kind)

    def close(self) -> None:
        try:
            self._call("DELETE", self.session)
        finally:
            self.process.terminate()
            self.process.wait()


@contextmanager
def opened(driver: str, browser: str, script: bool = True) -> Iterator[Browser]:
    window = Browser(driver, browser, script)
    try:
        yield window
    finally:
        window.close()


def sign_in(window: Browser, url: str, token: str) -> None:
    """As a person does it, by keyboard."""
    window.go(url + "/sign-in")
    window.write("#token", token)
    window.press("Enter")
    window.until("somebody is signed in", "return document.querySelector('.who') !== null")
