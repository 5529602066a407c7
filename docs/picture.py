#!/usr/bin/env python3
"""Makes the moving picture of the README, and its last frame as a still one, from the page of the playground.

    cargo build --release && python3 docs/picture.py        # or --program target/debug/countersign-playground

It starts the playground with an empty folder and no language model, opens its page in Chromium, and does what a person
would do: writes a request, switches to a second person, and approves. Nothing in the frames is drawn by hand except the
pointer and the strip below the page, which says what happens. The sidebar, the suggestions and the composer of the thread
are left out.

It needs Chromium and its driver (on Debian: chromium, chromium-driver). Pillow comes as a Python package into target/.
"""

import argparse
import base64
import contextlib
import io
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MOVING = ROOT / "docs/approval.webp"
STILL = ROOT / "docs/approval.png"
TOOLS = ROOT / "target/tools/picture"
PILLOW = "12.0.0"

# In CSS pixels; a frame has twice as many. Below 900 the page shows one thing at a time: the channel or the thread.
WIDTH, HEIGHT, STRIP = 760, 500, 48
MOST_BYTES = 900_000
# How long anything may take, in seconds.
BOUND = 20

REQUEST = "@countersign start the Math Hints experiment"
STEPS = ["Ana asks", "A card shows the change", "Bo approves", "Done, with undo"]

STYLE = """
  .sidebar, .asks, .pane-thread .pane-foot, .toasts { display: none !important; }
  .shell { padding-left: 6px !important; }
  body { box-sizing: border-box; padding-bottom: %(strip)dpx; }
  .picture-strip {
    position: fixed; inset: auto 0 0; z-index: 99; height: %(strip)dpx; padding: 0 16px; display: flex; justify-content: space-between;
    align-items: center; background: #fff; color: #5c6370; font: 550 14.5px Inter, sans-serif;
  }
  .picture-strip span { display: flex; align-items: center; gap: 8px; }
  .picture-strip b { display: grid; place-items: center; width: 24px; height: 24px; border-radius: 50%%; background: #e6e9ef; font-size: 13px; }
  .picture-strip .now { color: #14161a; }
  .picture-strip .now b { background: #2f55d4; color: #fff; }
  .picture-pointer { position: fixed; z-index: 100; pointer-events: none; filter: drop-shadow(0 1px 2px rgb(0 0 0 / 45%%)); }
""" % {"strip": STRIP}

POINTER = '<svg viewBox="0 0 24 24" width="26" height="26"><path d="M4 2l6.2 18 2.7-7.3L20 10z" fill="#111" stroke="#fff" stroke-width="1.6" stroke-linejoin="round"/></svg>'

DECORATE = """
  const [style, steps, now] = arguments;
  let strip = document.querySelector('.picture-strip');
  if (!strip) {
    const sheet = new CSSStyleSheet();  // The page allows no other.
    sheet.replaceSync(style);
    document.adoptedStyleSheets.push(sheet);
    strip = Object.assign(document.createElement('div'), { className: 'picture-strip' });
    document.body.append(strip);
  }
  strip.innerHTML = steps.map((words, at) => `<span class="${at === now ? 'now' : ''}"><b>${at + 1}</b>${words}</span>`).join('');
"""

POINT = """
  const [css, words, face] = arguments;
  document.querySelector('.picture-pointer')?.remove();
  if (!css) return;
  const target = [...document.querySelectorAll(css)].find((one) => one.innerText.includes(words));
  const { left, top, width, height } = target.getBoundingClientRect();
  const pointer = Object.assign(document.createElement('div'), { className: 'picture-pointer', innerHTML: face });
  Object.assign(pointer.style, { left: `${left + width * .8}px`, top: `${top + height * .6}px` });
  document.body.append(pointer);
"""


def pillow():
    """Returns Pillow's module, installed into target/ the first time."""
    if not (TOOLS / f"pillow-{PILLOW}.dist-info").is_dir():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--root-user-action=ignore"]
        subprocess.run([*pip, "--upgrade", "--target", str(TOOLS), f"pillow=={PILLOW}"], check=True)
    sys.path.insert(0, str(TOOLS))
    from PIL import Image

    return Image


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def listens(port):
    began = time.monotonic()
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        if time.monotonic() - began > BOUND:
            raise SystemExit(f"nothing listens on port {port}")
        time.sleep(0.1)


@contextlib.contextmanager
def running(command, port, **options):
    """Runs a program that listens on a port, and ends it afterwards."""
    try:
        program = subprocess.Popen(command, stdout=subprocess.DEVNULL, **options)
    except FileNotFoundError:
        raise SystemExit(f"there is no {command[0]}; see the top of {__file__}") from None
    try:
        listens(port)
        yield
    finally:
        program.send_signal(signal.SIGINT if "playground" in str(command[0]) else signal.SIGTERM)
        program.wait(BOUND)


class Page:
    """The page in Chromium, by WebDriver."""

    def __init__(self, driver, profile):
        self.base = f"http://127.0.0.1:{driver}/session"
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]
        arguments += ["--force-prefers-reduced-motion", f"--user-data-dir={profile}"]
        wanted = {"browserName": "chrome", "goog:chromeOptions": {"args": arguments}}
        session = self.call("POST", "", {"capabilities": {"alwaysMatch": wanted}})
        self.base += f"/{session['sessionId']}"
        size = {"width": WIDTH, "height": HEIGHT + STRIP, "deviceScaleFactor": 2, "mobile": False}
        self.call("POST", "/goog/cdp/execute", {"cmd": "Emulation.setDeviceMetricsOverride", "params": size})
        light = {"features": [{"name": "prefers-color-scheme", "value": "light"}]}
        self.call("POST", "/goog/cdp/execute", {"cmd": "Emulation.setEmulatedMedia", "params": light})

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(error.read().decode()) from None

    def script(self, text, *arguments):
        return self.call("POST", "/execute/sync", {"script": text, "args": list(arguments)})

    def find(self, css, words=""):
        """Waits until a visible match holds the words."""
        began = time.monotonic()
        while time.monotonic() - began < BOUND:
            for found in self.call("POST", "/elements", {"using": "css selector", "value": css}):
                (element,) = found.values()
                # Both fail if the page was drawn anew meanwhile.
                with contextlib.suppress(RuntimeError):
                    if self.call("GET", f"/element/{element}/displayed") and words in self.call("GET", f"/element/{element}/text"):
                        return element
            time.sleep(0.05)
        raise SystemExit(f"no `{css}` with “{words}”:\n{self.script('return document.body.innerText')}")

    def press(self, css, words=""):
        self.call("POST", f"/element/{self.find(css, words)}/click", {})

    def write(self, css, text):
        self.call("POST", f"/element/{self.find(css)}/value", {"text": text})

    def mouse(self, css=None, words=""):
        """Moves the mouse onto an element, or to where it has no effect."""
        move = {"type": "pointerMove", "duration": 0, "x": WIDTH // 2, "y": HEIGHT + STRIP - 4}
        if css:
            move |= {"x": 0, "y": 0, "origin": {"element-6066-11e4-a52e-4f735466cecf": self.find(css, words)}}
        self.call("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": [move]}]})

    def picture(self):
        return base64.b64decode(self.call("GET", "/screenshot"))


def story(page):
    """Goes through the story, and yields each frame with its time in milliseconds."""
    thread, composer = ".pane-thread", "[data-composer=channel]"

    def frame(step, milliseconds, css=None, words=""):
        page.script(DECORATE, STYLE, STEPS, step)
        page.mouse(css, words)
        page.script(POINT, css, words, POINTER)
        page.script("document.querySelector('.pane-thread .scroller')?.scrollTo(0, 0)")
        time.sleep(0.4)
        return page.picture(), milliseconds

    page.find(composer)
    page.find(".empty", "Nothing is changed until someone approves it.")
    yield frame(0, 1500)
    words = REQUEST.split(" ")
    for at, word in enumerate(words):
        last = at + 1 == len(words)
        page.write(composer, word if last else f"{word} ")
        yield frame(0, 1800 if last else 260)
    page.write(composer, "\n")
    page.press(".pane-main .replies", "1 reply")
    page.find(f"{thread} [data-action-id=approve]", "Start experiment")
    yield frame(1, 4500)
    page.press("#person", "Ana")
    page.find(".menu-item", "Bo")
    yield frame(2, 1800, ".menu-item", "Bo")
    page.press(".menu-item", "Bo")
    page.find("#person", "Bo")
    page.find(f"{thread} [data-action-id=approve]", "Start experiment")
    yield frame(2, 1800, f"{thread} [data-action-id=approve]", "Start")
    page.press(f"{thread} [data-action-id=approve]", "Start experiment")
    page.find(thread, "Approved by @bo")
    page.find(f"{thread} .button", "Undo: stop experiment")
    page.find(thread, "What next?")
    page.script("document.activeElement?.blur()")
    yield frame(3, 5000)


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    options.add_argument("--program", default=ROOT / "target/release/countersign-playground", type=Path)
    options.add_argument("--frames", type=Path, help="a folder for each frame as a PNG")
    options = options.parse_args()
    image = pillow()
    plain = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        port, driver = free_port(), free_port()
        playground = [str(options.program), "--port", str(port), "--data", str(folder / "data")]
        stack.enter_context(running(playground, port, env=plain, cwd=folder))
        stack.enter_context(running(["chromedriver", f"--port={driver}"], driver))
        page = Page(driver, folder / "profile")
        stack.callback(page.call, "DELETE", "")
        page.call("POST", "/url", {"url": f"http://127.0.0.1:{port}/#as=U1&channel=C1"})
        taken = list(story(page))
    frames = [image.open(io.BytesIO(png)).convert("RGB") for png, _ in taken]
    times = [milliseconds for _, milliseconds in taken]
    if options.frames:
        options.frames.mkdir(parents=True, exist_ok=True)
        for at, frame in enumerate(frames):
            frame.save(options.frames / f"{at:02}.png")
    moving = {"save_all": True, "append_images": frames[1:], "duration": times, "loop": 0}
    frames[0].save(MOVING, **moving, lossless=True, quality=100, method=6, minimize_size=True)
    # Flat colours: 256 of them are enough for the still one.
    frames[-1].quantize(256, dither=image.Dither.NONE).save(STILL, optimize=True)
    for path in (MOVING, STILL):
        size = path.stat().st_size
        print(f"{path.relative_to(ROOT)}: {size // 1000} kB")
        if size > MOST_BYTES:
            raise SystemExit(f"{path.name} is larger than {MOST_BYTES // 1000} kB")
    print(f"{len(frames)} frames, {sum(times) / 1000:.0f} s, {frames[0].width} x {frames[0].height}")


if __name__ == "__main__":
    main()
