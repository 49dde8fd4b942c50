"""The page in a real browser: what candidates wrote does nothing, keyboards get everywhere, small screens scroll in one
direction, axe finds nothing serious, it works without script, and scores move while they run.

check.py looks|plain|live DRIVER BROWSER AXE URL [PATH...], the token on standard input. Says what is wrong, and ends
with 1.
"""

import json
import sys
import time
from collections.abc import Callable

from driver import Browser, opened, sign_in

# Elements that the keyboard has to reach.
REACHABLE = "a[href], button, input:not([type=hidden]), summary, [tabindex='0']"
# From now on each stop of the focus is written down: which element it is, and whether it can be seen that it is there.
STOPS = """
const all = [...document.querySelectorAll(arguments[0])].filter((e) => e.getClientRects().length > 0);
window.stops = [];
document.addEventListener("focusin", ({target}) => {
  const style = getComputedStyle(target);
  const seen = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
  window.stops.push([all.indexOf(target), seen, target.outerHTML.slice(0, 120)]);
});
document.activeElement.blur();
scrollTo(0, 0);
return all.length;
"""


def alarms(window: Browser, url: str, where: str) -> list[str]:
    """Whatever a stranger's text did, or tried to do."""
    told = [f"{where}: {what}" for what in window.run("return window.alarms")]
    found = window.run(
        "return document.querySelectorAll('iframe, object, embed, base, style, img, form[action^=http]').length"
    )
    if found:
        told.append(f"{where}: {found} elements that are not ours")
    for entry in window.log("browser"):
        # The answers that refuse are part of the trial; everything else that a browser complains about is not.
        if entry["level"] == "SEVERE" and "status of 40" not in entry["message"]:
            told.append(f"{where}: {entry['message']}")
    for entry in window.log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            asked = message["params"]["request"]["url"]
            if not asked.startswith((url + "/", "data:", "chrome:", "about:")):
                told.append(f"{where}: asked {asked}")
    return told


def accessible(window: Browser, axe: str, where: str) -> list[str]:
    window.run(axe)
    script = """
      const done = arguments[arguments.length - 1];
      axe.run(document, {resultTypes: ["violations"]}).then(
        (result) => done(result.violations.map((v) =>
          [v.impact, v.id, v.help, v.nodes.slice(0, 3).map((n) => n.html.slice(0, 200) + " " + n.failureSummary)])),
        (error) => done([["critical", "axe", String(error), []]]));
    """
    found = window.wait(script)
    return [f"{where}: {v[0]} {v[1]}: {v[2]}: {v[3]}" for v in found if v[0] in ("serious", "critical")]


def walk(window: Browser, where: str) -> list[str]:
    """Once around by Tab: the skip link first, every element in turn, always seen, and out again."""
    count = window.run(STOPS, REACHABLE)
    window.press(*["Tab"] * count)
    stops = window.run("return window.stops")
    told = [f"{where}: nobody sees that the focus is at {name}" for at, seen, name in stops if at >= 0 and not seen]
    if not stops or "skip" not in stops[0][2]:
        told.append(f"{where}: the first stop is {stops[:1]}")
    reached = {at for at, _, _ in stops if at >= 0}
    if len(reached) < count:
        told.append(f"{where}: by keyboard {len(reached)} of {count} elements are reached")
    return told


def narrow(window: Browser, where: str) -> list[str]:
    wide, screen = window.run("const e = document.documentElement; return [e.scrollWidth, e.clientWidth]")
    return [f"{where}: {wide} pixels on a screen of {screen}"] if wide > screen else []


def looks(window: Browser, axe: str, url: str, paths: list[str], token: str) -> list[str]:
    told = controls(window, axe, url)
    told += accessible_form(window, axe, url)
    sign_in(window, url, token)
    for number, path in enumerate(paths):
        for width, scheme in ((1280, "light"), (400, "dark")):
            where = f"{path} at {width}, {scheme}"
            window.screen(width, 900, scheme)
            window.go(url + path)
            # Whatever waits for a pointer or the focus has its chance.
            window.run(
                "for (const e of document.querySelectorAll('main *')) e.dispatchEvent(new MouseEvent('mouseover'))"
            )
            window.run("for (const e of document.querySelectorAll('details')) e.open = true")
            told += accessible(window, axe, where)
            told += narrow(window, where)
            if width == 400 or number == 0:
                told += walk(window, where)
            told += alarms(window, url, where)
    window.screen(1280, 900, "light")
    window.click(".who button")
    window.until("somebody is signed out", "return document.querySelector('#token') !== null")
    window.go(url + "/")
    if window.run("return document.querySelector('#token') === null"):
        told.append("a page is shown after signing out")
    return told


def controls(window: Browser, axe: str, url: str) -> list[str]:
    """What is looked for is found where it is: a check that sees nothing would hold for every page."""
    told = []
    window.go(url + "/sign-in")
    window.run("""
      const main = document.querySelector("main");
      main.insertAdjacentHTML("beforeend", "<input id=bare><p style='width: 9px'>x</p><img src=x onerror=alert(1)>");
      main.append(Object.assign(document.createElement("script"), {textContent: "alert(2)"}));
      alert(3);
    """)
    if not any(" label:" in line for line in accessible(window, axe, "a control")):
        told.append("a control: axe does not see an input without a label")
    found = " ".join(alarms(window, url, "a control"))
    for sign in (
        "alert 3",
        "policy script-src-elem",
        "policy script-src-attr",
        "policy style-src-attr",
        "elements that are not ours",
    ):
        if sign not in found:
            told.append(f"a control: {sign} is not seen in {found}")
    if "alert 1" in found or "alert 2" in found:
        told.append("a control: a script of a stranger ran")
    window.run("document.body.append(Object.assign(document.createElement('pre'), {textContent: 'w'.repeat(9000)}))")
    if not narrow(window, "a control"):
        told.append("a control: a wide page is not seen")
    return told


def accessible_form(window: Browser, axe: str, url: str) -> list[str]:
    told = []
    window.go(url + "/sign-in")
    told += accessible(window, axe, "the form")
    window.write("#token", "nonsense")
    window.press("Enter")
    window.until("a wrong token is told", "return document.querySelector('[role=alert]') !== null")
    told += accessible(window, axe, "the form again")
    return told + alarms(window, url, "the form")


def plain(window: Browser, url: str, paths: list[str], token: str) -> list[str]:
    """Without script nothing can be asked of a page but what it is; so it is looked at from outside."""
    told = []

    def html() -> str:
        root = window.cdp("DOM.getDocument", depth=0)["root"]["nodeId"]
        return window.cdp("DOM.getOuterHTML", nodeId=root)["outerHTML"]

    def there() -> str:
        return window.cdp("Page.getNavigationHistory")["entries"][-1]["url"]

    def typed(text: str) -> None:
        window.cdp("Input.insertText", text=text)

    def pressed(key: str, code: int, text: str = "") -> None:
        for kind in ("keyDown", "keyUp"):
            window.cdp(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                windowsVirtualKeyCode=code,
                text=text if kind == "keyDown" else "",
            )

    window.cdp("Page.navigate", url=url + paths[0])
    until("the form is there", lambda: 'id="token"' in html())
    for _ in range(3):
        # Past the skip link and the name, to the field.
        pressed("Tab", 9)
    typed(token)
    pressed("Enter", 13, "\r")
    until("somebody is signed in without script", lambda: 'class="who"' in html())
    for path in paths:
        window.cdp("Page.navigate", url=url + path)
        until(f"{path} is there", lambda wanted=url + path: there() == wanted and "</footer>" in html())
        if "<h1>" not in html() or "<table" not in html():
            told.append(f"{path}: says nothing without script")
    return told


def until(what: str, holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not holds():
        if time.monotonic() > end:
            raise AssertionError(f"never happened: {what}")
        time.sleep(0.05)


def live(window: Browser, url: str, paths: list[str], token: str) -> list[str]:
    """A list that is open when a score begins, and then the score, each without a load of the page."""
    told = []
    sign_in(window, url, token)
    window.go(url + paths[0])
    window.run("window.same = true")
    print("watching", flush=True)
    here = window.until(
        "the score is in the list", "return document.querySelector('[data-open] a')?.getAttribute('href')"
    )
    window.until(
        "the list says how far it is",
        "return /attempt \\d of 7/.test(document.querySelector('[data-open] [data-line]')?.textContent)",
    )
    if not window.run("return window.same === true"):
        told.append("the list was loaded anew")
    window.go(url + here)
    window.run("window.same = true")
    seen = set()
    while window.run("return document.querySelector('[data-progress]') !== null"):
        line = window.run("return document.querySelector('[data-line]')?.textContent")
        if line:
            seen.add(line)
    if len(seen) < 3:
        told.append(f"a running score said no more than {seen}")
    window.until("the verdicts are there", "return document.querySelectorAll('.verdicts .word').length === 3")
    said = window.run("return document.getElementById('news').textContent")
    if "over" not in said or not window.run("return window.same === true"):
        told.append(f"the score's end was not told in place: {said!r}")
    return told + alarms(window, url, "live")


def main() -> int:
    what, driver, browser, axe, url, *paths = sys.argv[1:]
    token = sys.stdin.readline().strip()
    with open(axe, encoding="utf-8") as file:
        source = file.read()
    with opened(driver, browser, script=what != "plain") as window:
        match what:
            case "looks":
                told = looks(window, source, url, paths, token)
            case "plain":
                told = plain(window, url, paths, token)
            case _:
                told = live(window, url, paths, token)
    for line in told:
        print(line)
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main())
