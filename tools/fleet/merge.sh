#!/usr/bin/env bash
# What a merge costs: nights of 10, 100 and 1,000 synthetic shards with 100 failures each, as a table.
#
#   tools/fleet/merge.sh [SHARDS…]         uses target/release/waylay, or the command in WAYLAY
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
waylay=${WAYLAY:-$here/target/release/waylay}
[ $# -gt 0 ] || set -- 10 100 1000
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 - "$folder" "$waylay" "$@" <<'PYTHON'
import json, os, resource, subprocess, sys, time

folder, waylay, *sizes = sys.argv[1:]
environment = dict(waylay="0.1.0", system="s", processor="p", cores=2, memory_mib=1, config_digest="0")

def shard(place, number, of):
    at = f"2026-11-18T{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}Z"
    # Half of the failures are every shard's, half are its own.
    ids = [f"assert-{i:016x}" for i in range(50)] + [f"crash-{number:08x}{i:08x}" for i in range(50)]
    strict = dict(strategy="pct:depth=2", seed="7", runs=1000, threads=3, steps=40, depth=2, guarantee=None,
                  guarantees=[dict(depth=2, per_run=1 / 120, after_runs=0.9, runs=900, conditions=[])],
                  schedules_per_second=1000.0, steps_per_second=40000.0, exhausted=False, partly_controlled=0, left_behind=0,
                  unconfirmed=0)
    test = dict(name="t", plugin="/p", workers=2, iterations=1000, failures=100, average_ns=1.0, shortest_ns=1.0,
                longest_ns=1.0, retired=None, strict=strict)
    record = dict(format=1, name=f"c{number}", state="finished", started=at, updated=at, driver_pid=number, seed="7",
                  environment=environment, problems=[], hosts=1, signatures=100, failures=100,
                  scenarios=[dict(name="s", mode="strict", seconds=1.0, tests=[test])],
                  shard=dict(night="n", number=number, of=of, unit="schedules", machine=f"node{number % 64}", to=1000 * of,
                             planned=1000 * of, done=True, exhausted=False, steps="", outcomes="0", failures={i: 1 for i in ids},
                             **{"from": 0}))
    os.makedirs(place)
    json.dump(record, open(f"{place}/campaign.json", "w"))
    for id in ids:
        os.makedirs(f"{place}/failures/{id}")
        occurrence = dict(at=at, scenario="s", worker=None, iteration=number, seed="7", pid=1, workers=[])
        json.dump(dict(format=1, kind=id.split("-")[0], signature=dict(id=id, text="t"), what="w" * 80, test="t", plugin=None,
                       count=1, first_seen=at, last_seen=at, campaign_seed="7", stacks=[], dump_threads=None, gaps=[],
                       replay="", environment=environment, occurrences=[occurrence]),
                  open(f"{place}/failures/{id}/failure.json", "w"))
        open(f"{place}/failures/{id}/stacks.txt", "w").write("frame\n" * 200)

print("| shards | failures | seconds | seconds per shard | peak memory |\n|---|---|---|---|---|")
for size in map(int, sizes):
    for number in range(1, size + 1):
        shard(f"{folder}/{size}/{number}", number, size)
    began = time.monotonic()
    ended = subprocess.run([waylay, "merge", f"{folder}/{size}", "-o", f"{folder}/night-{size}", "--quiet", "--json"],
                           stdout=subprocess.PIPE)
    took = time.monotonic() - began
    night = json.loads(ended.stdout)
    assert ended.returncode == 1 and not night["missing"], ended
    assert night["campaign"]["failures"] == size * 100 and night["campaign"]["signatures"] == 50 + 50 * size, night
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    print(f"| {size:,} | {size * 100:,} | {took:.1f} | {took / size:.3f} | {peak} MiB |", flush=True)
PYTHON
