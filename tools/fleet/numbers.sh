#!/usr/bin/env bash
# What nights on several machines are measured by, as tables: packing, how soon a shard tests, the same night as 1, 4 and 16 shards on
# Slurm, and nights whose nodes are killed. `cargo bench --profile dev -p waylay-bucket --bench faults` breaks everything else.
#
#   tools/fleet/numbers.sh [SCHEDULES [NODES]]      1,000,000 schedules and 4 killed nodes when absent
#
# Uses target/release/waylay, or the command in WAYLAY.
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
waylay=${WAYLAY:-$here/target/release/waylay}
schedules=${1:-1000000}
killed=${2:-4}
source "$here/tools/fleet/cluster.sh"

now() { date +%s.%N; }
since() { awk -v a="$1" -v b="$(now)" 'BEGIN { printf "%.2f", b - a }'; }

# A test whose first iteration makes a file: the kernel says when.
cat >"$c/mark.c" <<'TEST'
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include "waylay.h"
WAYLAY_TEST(mark, "makes a file");
static int32_t mark_main(mark *self, waylay_context *worker) {
  (void)self, (void)worker;
  const char *file = getenv("WAYLAY_MARK");
  int made = file ? open(file, O_CREAT | O_EXCL, 0600) : -1;
  if (made >= 0) close(made);
  return WAYLAY_OK;
}
WAYLAY_TESTS("mark", test(mark));
TEST
gcc -shared -fPIC -g -I "$here/framework/abi/include" -o "$c/libmark.so" "$c/mark.c"
printf 'plugin-path = ["%s"]\n[[scenario]]\nname = "s"\n[[scenario.test]]\nplugin = "%s/libmark.so"\nname = "mark"\niterations = 1000\n' \
  "$c" "$c" >"$c/mark.toml"

echo "| what | seconds | promised |"
echo "|---|---|---|"
begun=$(now)
"$waylay" pack -o "$c/default.waylay" >/dev/null
echo "| pack the default mix ($(($(stat -c %s "$c/default.waylay") >> 20)) MiB) | $(since "$begun") | 10 |"
"$waylay" pack "$c/mark.toml" -o "$c/mark.waylay" >/dev/null
first() {
  rm -f "$c/mark"
  local begun
  begun=$(now)
  WAYLAY_MARK=$c/mark XDG_CACHE_HOME=$c/cache "$waylay" run "$c/mark.waylay" --shard 1/1 --quiet --out "$c/first-$RANDOM" >/dev/null 2>&1 || true
  awk -v a="$begun" -v b="$(stat -c %.9Y "$c/mark")" 'BEGIN { printf "%.2f", b - a }'
}
echo "| first iteration after a shard of a pack started, which it unpacks | $(first) | 2 |"
echo "| first iteration after a shard of a pack started, which was unpacked | $(first) | 2 |"

echo
echo "| shards on Slurm | schedules | failures | different | sum of (test, schedule, steps, outcome) | parts missing | seconds |"
echo "|---|---|---|---|---|---|---|"
expected=
for shards in 1 4 16; do
  begun=$(now)
  found "$waylay" fleet run --on slurm --shards "$shards" --at-most 8 --out "$c/n$shards" --json --quiet \
    -- explore --runs "$schedules" --seed 7 --minimize off --quiet -- "$c/lost" >"$c/n$shards.json" 2>/dev/null
  took=$(since "$begun")
  read -r runs failures different sum missing <<<"$(numbers "$c/n$shards.json")"
  echo "| $shards | $runs | $failures | $different | $sum | $missing | $took |"
  [ -z "$expected" ] || [ "$expected" = "$runs $failures $different $sum $missing" ] || fail "the nights differ"
  expected="$runs $failures $different $sum $missing"
done

[ "$killed" -gt 0 ] || exit 0
# A node and all that runs on it, in one blow; Slurm notices after half a minute, and starts its shards again elsewhere.
"$waylay" fleet run --on slurm --shards 8 --at-most 4 --detach --out "$c/killed" -- explore --runs "$schedules" --seed 7 --minimize off \
  --quiet -- "$c/lost" 2>/dev/null
done=0
while [ -n "$(squeue --noheader --states=RUNNING,PENDING,COMPLETING)" ]; do
  node=n$((RANDOM % 4 + 1))
  pid=$(cat "$c/slurmd-$node.pid")
  if [ "$done" -lt "$killed" ] && squeue --noheader --states=RUNNING --nodelist=$node --format=%i | grep -q .; then
    family() { for child in $(cat /proc/"$1"/task/*/children 2>/dev/null); do family "$child"; echo "$child"; done; }
    steps=$(pgrep -f "slurmstepd: \[.*" | while read -r step; do
      grep -qz "SLURM_CONF=$c/slurm.conf" /proc/"$step"/environ 2>/dev/null && grep -qz "SLURMD_NODENAME=$node" /proc/"$step"/environ && echo "$step"
    done || true)
    kill -9 "$pid" $steps $(for step in $steps; do family "$step"; done) 2>/dev/null || true
    sleep 1
    slurmd -N "$node"
    done=$((done + 1))
  fi
  sleep 3
done
code=0
"$waylay" merge "$c/killed/shards" -o "$c/killed/again" --json --quiet >"$c/killed.json" 2>/dev/null || code=$?
read -r runs failures different sum missing <<<"$(numbers "$c/killed.json")"
echo "| 8, $done nodes killed | $runs | $failures | $different | $sum | $missing | |"
if [ "$missing" = 0 ]; then
  [ "$expected" = "$runs $failures $different $sum $missing" ] || fail "the night whose nodes were killed differs"
else
  # What Slurm did not start again is named, one sentence a shard.
  [ "$code" != 0 ] || fail "a night with missing shards is clean"
fi
