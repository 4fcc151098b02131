"""Chromium without a window, driven through its DevTools protocol over a pair of pipes."""

import itertools
import json
import os
import shutil
import subprocess

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--remote-debugging-pipe",
)


class Browser:
    """One tab; a context manager.

    Attributes:
        errors: What scripts threw and what the page was refused, in words.
    """

    def __init__(self, profile):
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        # Chromium reads from descriptor 3 and writes to 4. High numbers keep them out of the way.
        os.set_inheritable(to_browser, True)
        os.set_inheritable(from_browser, True)
        flags = (*_FLAGS, f"--user-data-dir={profile}", "about:blank")
        script = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
        self._process = subprocess.Popen(
            ["bash", "-c", script, "bash", CHROMIUM, *flags],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._numbers, self._buffer, self._session, self.errors = itertools.count(1), b"", None, []
        (tab,) = (
            target["targetId"]
            for target in self.call("Target.getTargets")["targetInfos"]
            if target["type"] == "page"
        )
        attached = self.call("Target.attachToTarget", targetId=tab, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.resize(1200, 900)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait(30)
        os.close(self._read)
        os.close(self._write)

    def call(self, method, **parameters):
        """Calls a method of the protocol and returns its result."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def open(self, path):
        self.call("Page.navigate", url=path.as_uri())
        self.evaluate("new Promise(r => document.readyState === 'complete' ? r() : onload = r)")
        self.frame()

    def frame(self):
        """Waits until what has changed is drawn."""
        self.evaluate("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))")

    def evaluate(self, script):
        """The value of a JavaScript expression, awaited, as JSON carries it."""
        options = {"awaitPromise": True, "returnByValue": True}
        answer = self.call("Runtime.evaluate", expression=script, **options)
        if "exceptionDetails" in answer:
            raise RuntimeError(_text(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def resize(self, width, height):
        size = {"width": width, "height": height, "deviceScaleFactor": 1}
        self.call("Emulation.setDeviceMetricsOverride", mobile=False, **size)

    def drag(self, selector, points):
        """Draws a line through points of an element, given as shares of its width and height."""
        corners = [self._point(selector, *point) for point in points]
        self._mouse("mousePressed", *corners[0])
        for corner in corners[1:]:
            self._mouse("mouseMoved", *corner)
        self._mouse("mouseReleased", *corners[-1])
        self.frame()

    def click(self, selector, x=0.5, y=0.5):
        self.drag(selector, [(x, y)])

    def press(self, key, code=0):
        for kind in ("keyDown", "keyUp"):
            options = {"key": key, "windowsVirtualKeyCode": code}
            if kind == "keyDown" and len(key) == 1:
                options["text"] = key
            self.call("Input.dispatchKeyEvent", type=kind, **options)
        self.frame()

    def _point(self, selector, x, y):
        box = self.evaluate(
            f"(b => [b.left, b.top, b.width, b.height])"
            f"(document.querySelector('{selector}').getBoundingClientRect())"
        )
        return box[0] + x * box[2], box[1] + y * box[3]

    def _mouse(self, kind, x, y, button="left", buttons=1):
        options = {"button": button, "buttons": buttons, "clickCount": 1}
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **options)

    def _next(self):
        while b"\0" not in self._buffer:
            part = os.read(self._read, 1 << 16)
            if not part:
                raise RuntimeError("Chromium has ended.")
            self._buffer += part
        message, self._buffer = self._buffer.split(b"\0", 1)
        message = json.loads(message)
        self._note(message)
        return message

    def _note(self, message):
        if message.get("method") == "Runtime.exceptionThrown":
            self.errors.append(_text(message["params"]["exceptionDetails"]))
        if message.get("method") == "Log.entryAdded":
            entry = message["params"]["entry"]
            if entry["level"] == "error":
                self.errors.append(entry["text"])


def _text(details):
    return details.get("exception", {}).get("description") or details["text"]
