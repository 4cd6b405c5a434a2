"""Checks what the default mix printed: the seeded bugs, each found, and silence from the healthy libraries.

    python3 .ci/check_demo.py SUMMARY.json EXIT_CODE [FOLDER]

FOLDER is where the folders of the failures are, if this system does not know the paths in the summary: those of Windows."""

import json
import pathlib
import re
import sys

SEEDED = {"deadlock": "deadlock", "assert": "assert", "panic": "assert", "crash": "crash", "exception": "exception",
          "lease": "assert", "read": "assert", "late-deadlock": "deadlock", "stock": "exception", "ticket": "assert"}

# LMDB and libzmq are not built for Windows.
POTS = {"linux": 14, "windows": 12}
FILES = ["failure.json", "stacks.txt", "log.txt"]
SCRIPT = {"linux": "replay.sh", "windows": "replay.cmd"}

summary = json.load(open(sys.argv[1], encoding="utf-8"))
code = int(sys.argv[2])
found = {failure["test"]: failure["kind"] for failure in summary["failures"]}
iterations = {
    test["name"]: test["iterations"]
    for scenario in summary["campaign"]["scenarios"]
    if scenario["name"] in ("libraries", "melting-pot")
    for test in scenario["tests"]
}
system = summary["campaign"]["environment"]["system"].split()[0].split("-")[0]
problems = []
if code != 1:
    problems.append(f"exit code {code}, not 1")
if found != SEEDED:
    problems.append(f"found {found}, not {SEEDED}")
if summary["campaign"]["problems"]:
    problems.append(f"did not run: {summary['campaign']['problems']}")
problems += [f"{name} ran no iteration" for name, count in iterations.items() if count == 0]
pots = [test for scenario in summary["campaign"]["scenarios"] for test in scenario["tests"] if test.get("pot")]
if len({test["name"] for test in pots}) < POTS[system]:
    problems.append(f"only {len(pots)} tests ran in pots")
for scenario in summary["campaign"]["scenarios"]:
    if scenario["mode"] == "randomized":
        if not scenario["randomizer"]["suspensions"]:
            problems.append(f"{scenario['name']}: no thread was suspended")
        problems += [f"{test['name']}: no bound" for test in scenario["tests"] if not test.get("bound")]
if not any(scenario["mode"] == "randomized" for scenario in summary["campaign"]["scenarios"]):
    problems.append("no scenario was randomized")
strict = [test for scenario in summary["campaign"]["scenarios"] if scenario["mode"] == "strict" for test in scenario["tests"]]
if not strict:
    problems.append("no scenario was strict")
for test in strict:
    numbers = test["strict"]
    if numbers["unconfirmed"] or numbers["partly_controlled"]:
        problems.append(f"{test['name']}: {numbers['unconfirmed']} failures not confirmed, {numbers['partly_controlled']} schedules partly controlled")
    if test["name"].endswith("-fixed") and not (numbers["guarantee"] and numbers["guarantee"]["after_runs"] > 0.99):
        problems.append(f"{test['name']}: no guarantee from {numbers['runs']} schedules")
for failure in summary["failures"]:
    if not failure["replay"].startswith("waylay replay "):
        problems.append(f"no replay line for {failure['test']}")
    name = re.split(r"[/\\]", failure["folder"])[-1]
    folder = pathlib.Path(sys.argv[3]) / name if len(sys.argv) > 3 else pathlib.Path(failure["folder"])
    record = json.loads((folder / "failure.json").read_text(encoding="utf-8"))
    missing = [file for file in [*FILES, SCRIPT[system]] if not (folder / file).is_file()]
    if missing:
        problems.append(f"{name} has no {', '.join(missing)}")
    if record["gaps"]:
        problems.append(f"{name} has gaps: {record['gaps']}")
    if not any(frame.get("function") and frame.get("file") for stack in record["stacks"] for frame in stack["frames"]):
        problems.append(f"{name} has no stack with names and places")
print(f"demo: {len(found)} seeded bugs found, healthy tests ran {sum(iterations.values()):,} iterations")
sys.exit("\n".join(problems) if problems else 0)
