"""Drives a headless Chromium over its debugging pipe, with the standard library alone."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def find() -> str:
    """The browser on the path. Without one the test fails where CI is set, since a skipped test shows nothing there."""
    for name in NAMES:
        if found := shutil.which(name):
            return found
    why = "no Chromium on PATH: `apt-get install chromium` (.ci/run does), or leave this test out with a reason"
    if os.environ.get("CI", "").lower() in ("1", "true"):
        pytest.fail(why)
    pytest.skip(why)


class Page:
    """One tab. Answers of the browser are awaited; what it reports meanwhile is kept in `events`."""

    def __init__(self, reader: Any, writer: Any) -> None:
        self._reader, self._writer = reader, writer
        self._ids = count(1)
        self._session: str | None = None
        self.events: list[Mapping[str, Any]] = []

    def open(self, file: Path) -> None:
        """Load a local file and wait until it is there."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.call(f"{domain}.enable")
        self.call("Page.navigate", url=file.as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self._read()

    def value(self, expression: str) -> Any:
        """What a JavaScript expression gives. Raises AssertionError when it throws."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def screen(self, width: int, height: int, scheme: str) -> None:
        """The size of the window, and whether its user likes light or dark."""
        phone = width < 600
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def press(self, key: str, text: str = "") -> None:
        """One key, down and up."""
        codes = {"Enter": 13, "Tab": 9, "Escape": 27}
        held = {"key": key, "windowsVirtualKeyCode": codes.get(key, ord(key[0].upper()))}
        self.call("Input.dispatchKeyEvent", type="keyDown", **held, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **held)

    def call(self, method: str, **params: Any) -> Any:
        """Send a command and wait for its answer."""
        number = next(self._ids)
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        self._writer.write(json.dumps(message).encode("utf-8") + b"\0")
        self._writer.flush()
        while True:
            answer = self._read()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]

    def _read(self) -> Mapping[str, Any]:
        raw = bytearray()
        while (byte := self._reader.read(1)) != b"\0":
            assert byte, "the browser went away"
            raw += byte
        message: Mapping[str, Any] = json.loads(raw)
        if "method" in message:
            self.events.append(message)
        return message


@contextmanager
def browser(profile: Path) -> Iterator[Page]:
    """A browser of its own, ended with the block."""
    to_read, to_write = os.pipe()
    from_read, from_write = os.pipe()
    flags = "--headless --no-sandbox --disable-gpu --no-first-run --disable-dev-shm-usage --remote-debugging-pipe"
    command = f'exec "$0" {flags} --user-data-dir="$1" 3<&{to_read} 4>&{from_write}'
    process = subprocess.Popen(
        ["bash", "-c", command, find(), str(profile)], pass_fds=(to_read, from_write), stderr=subprocess.DEVNULL
    )
    os.close(to_read)
    os.close(from_write)
    with os.fdopen(to_write, "wb") as writer, os.fdopen(from_read, "rb") as reader:
        try:
            yield Page(reader, writer)
        finally:
            process.terminate()
            process.wait(timeout=20)
