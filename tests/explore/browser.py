"""Drives Debian's Chromium through its pipe (--remote-debugging-pipe): messages of the Chrome DevTools Protocol, each
JSON that ends with a 0 byte."""

import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

DEADLINE_S = 120  # of anything that is waited for; a busy machine must not reach it
FLAGS = ["--headless=new", "--no-sandbox", "--remote-debugging-pipe", "--disable-dev-shm-usage", "--disable-gpu",
         "--no-first-run", "--disable-background-networking", "--disable-component-update", "--hide-scrollbars"]


class Browser:
    """One Chromium with one page. Errors of the page are kept in `problems`, its fetches in `requests`."""

    def __init__(self, width=1400, height=1000):
        self.home = tempfile.mkdtemp(prefix="anyccl-explore-")
        to_browser, self.out = os.pipe()
        self.into, from_browser = os.pipe()
        # Chromium reads from descriptor 3 and writes to 4; these are far from both.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 50) for end in (to_browser, from_browser)]
        for end in (to_browser, from_browser):
            os.close(end)
        command = ["bash", "-c", 'exec "$@" 3<&%d 4>&%d' % tuple(ends), "bash", "chromium", *FLAGS,
                   f"--user-data-dir={self.home}/profile", f"--window-size={width},{height}", "about:blank"]
        with open(f"{self.home}/log", "w") as log:
            self.process = subprocess.Popen(command, pass_fds=ends, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env={**os.environ, "HOME": self.home}, start_new_session=True)
        for end in ends:
            os.close(end)
        self.buffer, self.sent, self.events = b"", 0, []
        self.problems, self.requests, self.session = [], [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self):
        os.close(self.out)
        os.close(self.into)
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        shutil.rmtree(self.home, ignore_errors=True)  # its last children may still write there

    def call(self, method, **params):
        """The result of a command."""
        self.sent += 1
        message = {"id": self.sent, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        answer = self._wait_for(lambda m: m.get("id") == self.sent, method)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def wait_for(self, event):
        """An event that has come since the last command was sent, or comes."""
        for seen in self.events:
            if seen["method"] == event:
                return seen["params"]
        return self._wait_for(lambda m: m.get("method") == event, event)["params"]

    def open(self, url):
        """Returns when the page has run its script."""
        self.events.clear()
        self.call("Page.navigate", url="about:blank")  # else a change of the # alone would load nothing
        self.wait_for("Page.loadEventFired")
        self.events.clear()
        self.call("Page.navigate", url=url)
        self.wait_for("Page.loadEventFired")
        self.events.clear()

    def evaluate(self, expression):
        """The value of JavaScript, of a promise when it has one."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def go(self, address):
        """To another state of the page, as someone who changes its address."""
        self.evaluate(f"""new Promise((done) => {{
            if (location.hash === {json.dumps(address)}) return done();
            addEventListener('hashchange', () => done(), {{ once: true }});
            location.hash = {json.dumps(address)};
        }})""")

    def press(self, key):
        text = {"text": key} if len(key) == 1 else {}
        code = {"ArrowLeft": 37, "ArrowRight": 39, "ArrowDown": 40, "Home": 36, "End": 35, " ": 32, "Tab": 9}[key]
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def click(self, selector):
        """With the mouse, on the middle of an element."""
        x, y = self.evaluate(f"""(() => {{
            const element = document.querySelector({json.dumps(selector)});
            element.scrollIntoView({{ block: 'center', behavior: 'instant' }});
            const box = element.getBoundingClientRect();
            return [box.x + box.width / 2, box.y + box.height / 2];
        }})()""")
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def prefer(self, **features):
        """As prefers_color_scheme="dark"."""
        named = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.call("Emulation.setEmulatedMedia", features=named)

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def _wait_for(self, wanted, what):
        deadline = time.monotonic() + DEADLINE_S
        while True:
            message = self._receive(deadline, what)
            self._note(message)
            if wanted(message):
                return message

    def _receive(self, deadline, what):
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.into], [], [], max(0, deadline - time.monotonic()))
            part = os.read(self.into, 1 << 20) if ready else b""
            if not part:
                with open(f"{self.home}/log") as log:
                    raise RuntimeError(f"chromium {'ended' if ready else 'did not answer'}: {what}\n{log.read()[-2000:]}")
            self.buffer += part
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def _note(self, message):
        method, params = message.get("method"), message.get("params", {})
        if method:
            self.events.append(message)
        if method == "Runtime.exceptionThrown":
            self.problems.append(params["exceptionDetails"])
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("warning", "error"):
            self.problems.append(params["entry"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"].split("#")[0])
