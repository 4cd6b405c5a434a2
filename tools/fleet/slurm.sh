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
if ! command -v slurmctld >/dev/null || ! command -v munged >/dev/null; then
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "slurm-wlm and munge are not installed: nothing was tried" >&2
    [ -z "${WAYLAY_REQUIRE_REAL_PROGRAMS:-}" ]
    exit
  fi
  RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends slurm-wlm munge >/dev/null
fi

# Sockets have short names.
c=$(mktemp -d /tmp/slurm.XXXXXX)
end() {
  scancel --user="$(id -un)" >/dev/null 2>&1 || true
  local pids=()
  for file in "$c"/slurmd-n*.pid "$c/slurmctld.pid" "$c/munge/pid"; do
    [ -s "$file" ] && pids+=("$(cat "$file")")
  done
  if [ ${#pids[@]} -gt 0 ]; then
    kill "${pids[@]}" 2>/dev/null || true
    # A daemon that ends writes its state, into a folder that must still be there; one that does not end is killed.
    for _ in $(seq 100); do
      kill -0 "${pids[@]}" 2>/dev/null || break
      sleep 0.1
    done
    kill -9 "${pids[@]}" 2>/dev/null || true
  fi
  # What is left behind in /tmp decides nothing.
  rm -rf "$c" || true
}
trap end EXIT
fail() {
  echo "slurm.sh: $*" >&2
  tail -n 20 "$c"/log/slurmctld.log "$c"/*/log/*.log >&2 2>/dev/null || true
  exit 1
}

mkdir -p "$c"/{munge,state,spool,log}
chmod 755 "$c" "$c/munge"
dd if=/dev/urandom of="$c/munge/key" bs=128 count=1 status=none
chmod 600 "$c/munge/key"
port=$((20000 + $$ % 20000))
cat >"$c/slurm.conf" <<CONF
ClusterName=t
SlurmctldHost=localhost(127.0.0.1)
SlurmUser=$(id -un)
AuthInfo=socket=$c/munge/sock,cred_expire=5
SlurmctldPort=$port
StateSaveLocation=$c/state
SlurmdSpoolDir=$c/spool/%n
SlurmctldPidFile=$c/slurmctld.pid
SlurmdPidFile=$c/slurmd-%n.pid
SlurmctldLogFile=$c/log/slurmctld.log
SlurmdLogFile=$c/log/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1,sched_min_interval=0
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
SlurmdTimeout=10
KillWait=5
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
NodeName=n[1-4] NodeHostname=localhost NodeAddr=127.0.0.1 Port=[$((port + 1))-$((port + 4))] CPUs=4
PartitionName=low Nodes=ALL Default=YES PriorityTier=1 GraceTime=0 LLN=YES
PartitionName=high Nodes=ALL PriorityTier=10 PreemptMode=OFF LLN=YES
CONF
export SLURM_CONF=$c/slurm.conf
munged --key-file="$c/munge/key" --socket="$c/munge/sock" --pid-file="$c/munge/pid" --log-file="$c/munge/log" \
  --seed-file="$c/munge/seed"
slurmctld
for node in 1 2 3 4; do slurmd -N "n$node"; done
for _ in $(seq 1200); do
  [ "$(sinfo --noheader --Node --format=%T | grep -c '^idle$')" -ge 4 ] && break
  sleep 0.1
done

cat >"$c/lost.c" <<'PROGRAM'
/* Two threads lose an update when they meet; with a third that only takes time. */
#include <pthread.h>
static int n;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *add(void *x) { int k = n; n = k + 1; return x; }
static void *idle(void *x) { for (int i = 0; i < 5; i++) { pthread_mutex_lock(&m); pthread_mutex_unlock(&m); } return x; }
int main(void) {
  pthread_t t, u, v;
  pthread_create(&t, 0, add, 0); pthread_create(&u, 0, add, 0); pthread_create(&v, 0, idle, 0);
  pthread_join(t, 0); pthread_join(u, 0); pthread_join(v, 0);
  return n == 2 ? 0 : 3;
}
PROGRAM
gcc -g -o "$c/lost" "$c/lost.c" -lpthread
explore=(explore --runs "$schedules" --seed 7 --minimize off --quiet)

# What a night came to: schedules, failures, signatures, and the sum of digests of every schedule's number, steps and outcome.
numbers() {
  python3 -c '
import json, sys
night = json.load(open(sys.argv[1]))
tests = [test for scenario in night["campaign"]["scenarios"] for test in scenario["tests"]]
print(sum(test["iterations"] for test in tests), night["campaign"]["failures"], night["campaign"]["signatures"],
      night["outcomes"], len(night["missing"]))' "$1"
}
# Ends with 1, because failures are found; anything else is an error.
found() {
  local code=0
  "$@" || code=$?
  [ "$code" = 1 ] || fail "ended with $code instead of 1: $*"
}

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
