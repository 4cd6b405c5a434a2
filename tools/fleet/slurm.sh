#!/usr/bin/env bash
# A night on a real Slurm cluster of four nodes on this machine, compared with the same night in one process.
#
#   tools/fleet/slurm.sh [SCHEDULES]       of the night; 20,000 when absent
#
# Uses target/release/waylay, or the command in WAYLAY. Installs slurm-wlm and munge where they are missing and may be. Ends what it
# started.
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
waylay=${WAYLAY:-$here/target/release/waylay}
schedules=${1:-20000}
# Of the night that is preempted: long enough to be caught in the middle.
long_night=$((schedules * 8))
source "$here/tools/fleet/cluster.sh"
explore=(explore --runs "$schedules" --seed 7 --minimize off --quiet)

echo "== the night in one process"
found "$waylay" "${explore[@]}" --shard 1/1 --out "$c/one/shards/1" -- "$c/lost" 2>/dev/null
found "$waylay" merge "$c/one/shards" -o "$c/one/night" --json --quiet >"$c/one.json"
one=$(numbers "$c/one.json")

echo "== 16 shards on Slurm, 8 at a time"
found "$waylay" fleet run --on slurm --shards 16 --at-most 8 --out "$c/sixteen" --json -- "${explore[@]}" -- "$c/lost" \
  >"$c/sixteen.json" 2>"$c/sixteen.txt"
sixteen=$(numbers "$c/sixteen.json")
echo "one process: $one"
echo "16 shards:   $sixteen"
[ "$one" = "$sixteen" ] || fail "the nights differ"
[ -f "$c/sixteen/night/campaign.json" ] || fail "the merge job wrote nothing"

echo "== 4 shards, preempted in the middle and gone on"
"$waylay" fleet run --on slurm --shards 4 --at-most 4 --detach --sbatch=--cpus-per-task=4 --out "$c/four" \
  -- explore --runs "$long_night" --seed 7 --minimize off --quiet -- "$c/lost" 2>/dev/null
for _ in $(seq 1200); do
  [ "$(find "$c/four/shards" -name campaign.json 2>/dev/null | wc -l)" -ge 4 ] && break
  sleep 0.1
done
# Takes all nodes: every shard is asked to end, and requeued.
sbatch --quiet --partition=high --nodes=4 --ntasks=4 --cpus-per-task=4 --exclusive --output=/dev/null --wrap='sleep 1'
for _ in $(seq 3000); do
  [ -z "$(squeue --noheader)" ] && break
  sleep 0.1
done
parts=$(find "$c/four/shards" -name campaign.json | wc -l)
found "$waylay" explore --runs "$long_night" --seed 7 --minimize off --quiet --shard 1/1 --out "$c/long/shards/1" -- "$c/lost" 2>/dev/null
found "$waylay" merge "$c/long/shards" -o "$c/long/night" --json --quiet >"$c/long.json"
found "$waylay" merge "$c/four/shards" -o "$c/four/again" --json --quiet >"$c/four.json"
long=$(numbers "$c/long.json") four=$(numbers "$c/four.json")
echo "one process: $long"
echo "4 shards:    $four (in $parts campaigns)"
[ "$parts" -gt 4 ] || echo "no shard was preempted in the middle: it was too fast"
[ "$long" = "$four" ] || fail "what went on was counted wrongly"

echo "== a shard that is cancelled is missing, and the night is not green"
"$waylay" fleet run --on slurm --shards 2 --detach --out "$c/two" -- explore --for 60s --seed 7 --minimize off --quiet -- "$c/lost" \
  2>/dev/null
for _ in $(seq 1200); do
  [ "$(find "$c/two/shards" -name campaign.json 2>/dev/null | wc -l)" -ge 2 ] && break
  sleep 0.1
done
"$waylay" fleet cancel "$c/two"
for _ in $(seq 1200); do
  [ -z "$(squeue --noheader)" ] && break
  sleep 0.1
done
code=0
"$waylay" fleet collect "$c/two" 2>"$c/two.txt" || code=$?
[ "$code" != 0 ] && grep -q 'shard 1/2 was cut off' "$c/two.txt" || fail "a cancelled shard is not named: $(cat "$c/two.txt")"
echo "all as in one process"
