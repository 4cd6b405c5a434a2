"""Checks what the default mix printed: the seeded bugs, each found, and silence from the healthy libraries."""

import json
import sys

SEEDED = {"deadlock": "deadlock", "assert": "assert", "panic": "assert", "crash": "crash", "exception": "assert",
          "lease": "assert", "read": "assert", "late-deadlock": "deadlock", "stock": "assert", "ticket": "assert"}

summary = json.load(open(sys.argv[1], encoding="utf-8"))
code = int(sys.argv[2])
found = {failure["test"]: failure["kind"] for failure in summary["failures"]}
iterations = {
    test["name"]: test["iterations"]
    for scenario in summary["campaign"]["scenarios"]
    if scenario["name"] in ("libraries", "melting-pot")
    for test in scenario["tests"]
}
problems = []
if code != 1:
    problems.append(f"exit code {code}, not 1")
if found != SEEDED:
    problems.append(f"found {found}, not {SEEDED}")
if summary["campaign"]["problems"]:
    problems.append(f"did not run: {summary['campaign']['problems']}")
problems += [f"{name} ran no iteration" for name, count in iterations.items() if count == 0]
pots = [test for scenario in summary["campaign"]["scenarios"] for test in scenario["tests"] if test.get("pot")]
if len({test["name"] for test in pots}) < 14:
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
print(f"demo: {len(found)} seeded bugs found, healthy tests ran {sum(iterations.values()):,} iterations")
sys.exit("\n".join(problems) if problems else 0)
