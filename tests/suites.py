"""Runs the tests that `cargo test --no-run --message-format=json` has built, given on its standard input.

Each suite (a crate's own tests, or a module of the tests from outside) is a process of its own, two at a time, the longest
of the last run first; a line says how long each took, and the output of one that failed follows it. Arguments are the
filters of the tests from outside (a suite's name, or the start of a test's); after `--skip`, what is left out.
"""

import json
import os
import pathlib
import subprocess
import sys
import threading
import time

arguments = sys.argv[1:]
cut = arguments.index("--skip") if "--skip" in arguments else len(arguments)
only, skipped = tuple(arguments[:cut]), tuple(arguments[cut + 1 :])
times_file = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", "target"), "suite-times.json")
times = json.loads(times_file.read_text()) if times_file.exists() else {}


def suite_of(crate, kind, test):
    """The suite of a test: its crate; for the tests from outside its module, which is large in `durability` and `dialogues`."""
    if kind != "test" or crate != "integration":
        return crate if kind == "test" else f"{crate}'s own"
    parts = test.split("::")
    return "::".join(parts[: 2 if parts[0] in ("durability", "dialogues") else 1])


suites = {}
for line in sys.stdin:
    message = json.loads(line) if line.startswith("{") else {}
    if message.get("reason") != "compiler-artifact" or not message["executable"] or not message["profile"]["test"]:
        continue
    target, folder = message["target"], pathlib.Path(message["manifest_path"]).parent
    environment = {**os.environ, "CARGO_MANIFEST_DIR": str(folder)}
    if target["kind"] == ["bench"]:
        continue  # built for the lints; `cargo bench` runs it
    listed = subprocess.run([message["executable"], "--list", "--format=terse"], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    for test in (line.removesuffix(": test") for line in listed.stdout.splitlines() if line.endswith(": test")):
        from_outside = target["kind"] == ["test"]
        if from_outside and ((only and not test.startswith(only) and target["name"] not in only) or (skipped and test.startswith(skipped))):
            continue
        name = suite_of(target["name"], target["kind"][0], test)
        suites.setdefault(name, (message["executable"], folder, environment, []))[3].append(test)



def expected(name):
    """How long a suite took in the last run; without one, those under failure come first, then those with the most tests."""
    return times.get(name, len(suites[name][3]) + 1000 * name.startswith(("durability", "nemesis")))


waiting = sorted(suites, key=expected)
lock, totals = threading.Lock(), {"passed": 0, "failed": 0, "ignored": 0}


def run_suites():
    while True:
        with lock:
            if not waiting:
                return
            name = waiting.pop()
        executable, folder, environment, tests = suites[name]
        began = time.monotonic()
        ran = subprocess.run([executable, "--exact", *tests], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
        with lock:
            times[name] = round(time.monotonic() - began, 1)
            words = next((line for line in reversed(ran.stdout.splitlines()) if line.startswith("test result:")), "test result: FAILED. 0 passed; 1 failed; 0 ignored").replace(";", "").split()
            for count, what in zip(words, words[1:]):
                if what in totals:
                    totals[what] += int(count)
            print(f"{times[name]:7.1f} s  {len(tests):4d}  {name}{'' if ran.returncode == 0 else '  FAILED'}", flush=True)
            if ran.returncode != 0:
                totals["failed"] = max(totals["failed"], 1)
                print(ran.stdout, flush=True)


workers = [threading.Thread(target=run_suites) for _ in range(2)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
if suites:
    times_file.write_text(json.dumps(times, indent=1, sort_keys=True))
print(f"\n{totals['passed']} passed, {totals['failed']} failed, {totals['ignored']} skipped")
sys.exit(totals["failed"] > 0 or not suites)
