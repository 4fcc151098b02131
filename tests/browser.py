"""Chromium without a window, driven through its DevTools protocol over a pair of pipes."""

import itertools
import json
import os
import shutil
import subprocess

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
_FLAGS = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync"
_FLAGS += " --disable-background-networking --disable-component-update --hide-scrollbars"
_FLAGS += " --window-size=1200,900 --remote-debugging-pipe"


class Browser:
    """One tab, as a context manager; `errors` lists exceptions of scripts and errors in the log."""

    def __init__(self, profile):
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        # Chromium reads from descriptor 3 and writes to 4.
        script = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
        flags = [*_FLAGS.split(), "--host-resolver-rules=MAP * ~NOTFOUND"]
        self._process = subprocess.Popen(
            ["bash", "-c", script, "bash", CHROMIUM, *flags, f"--user-data-dir={profile}"],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._numbers, self._buffer, self._session, self.errors = itertools.count(1), b"", {}, []
        tab = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=tab, flatten=True)
        self._session = {"sessionId": attached["sessionId"]}
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait(30)
        os.close(self._read)
        os.close(self._write)

    def call(self, method, **parameters):
        """Call a method of the protocol and return its result."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters, **self._session}
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != number:
            if answer.get("method") == "Runtime.exceptionThrown":
                self.errors.append(_text(answer["params"]["exceptionDetails"]))
            entry = answer.get("params", {}).get("entry", {})  # of the log
            self.errors += [entry["text"]] if entry.get("level") == "error" else []
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def _next(self):
        while b"\0" not in self._buffer:
            part = os.read(self._read, 1 << 16)
            if not part:
                raise RuntimeError("Chromium has ended.")
            self._buffer += part
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)

    def open(self, path):
        self.call("Page.navigate", url=path.as_uri())
        self.evaluate("new Promise(r => document.readyState === 'complete' ? r() : onload = r)")
        self.frame()

    def frame(self):
        """Wait until what has changed is drawn."""
        self.evaluate("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))")

    def evaluate(self, script):
        """The value of a JavaScript expression, awaited, as JSON carries it."""
        options = {"awaitPromise": True, "returnByValue": True}
        answer = self.call("Runtime.evaluate", expression=script, **options)
        if "exceptionDetails" in answer:
            raise RuntimeError(_text(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def drag(self, selector, points):
        """Draw a line through points of an element, given as shares of its width and height."""
        left, top, width, height = self.evaluate(
            f"(b => [b.left, b.top, b.width, b.height])"
            f"(document.querySelector('{selector}').getBoundingClientRect())"
        )
        kinds = ["mousePressed", *["mouseMoved"] * (len(points) - 1), "mouseReleased"]
        for kind, (x, y) in zip(kinds, [*points, points[-1]], strict=True):
            place = {"x": left + x * width, "y": top + y * height}
            options = {"button": "left", "buttons": 1, "clickCount": 1}
            self.call("Input.dispatchMouseEvent", type=kind, **place, **options)
        self.frame()

    def click(self, selector, y=0.5):
        self.drag(selector, [(0.5, y)])

    def press(self, key):
        text = {"text": key} if len(key) == 1 else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)
        self.frame()


def _text(details):
    return details.get("exception", {}).get("description") or details["text"]
