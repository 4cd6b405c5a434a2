# A real Slurm cluster of four nodes on this machine, for sourcing: its folder is $c, a program that fails now and then is $c/lost.
# Installs slurm-wlm and munge where they are missing and may be. Ends what it started when the script ends.

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

