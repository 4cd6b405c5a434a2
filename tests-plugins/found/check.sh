#!/usr/bin/env bash
# Explores every program of this folder, or those named, and its twin with the fixed library, and prints a line for each:
#   check.sh [NAME...]
# SEED (default 1), RUNS for the fixed ones (default 100000) and WAYLAY (default target/release/waylay) are taken from the
# environment. Ends with 1 when a bug is not found, or a fixed version fails.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
export WAYLAY=${WAYLAY:-$here/../../target/release/waylay}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
[ $# -gt 0 ] || set -- $(cd "$here" && ls ./*.rs | sed 's|^\./||; s|\.rs$||')

# explore NAME LINE RUNS: the kind of the first failure, and how many schedules were run.
explore() {
  local program asks=()
  ! grep -q '^//! asks: races' "$here/$1.rs" || asks=(--races)
  program=$("$here/build.sh" "$1" "$2")
  "$WAYLAY" explore -q --json "${asks[@]}" --seed "${SEED:-1}" --runs "$3" --stop-on-first --minimize off --out "$out" -- "$program" 2>/dev/null |
    python3 -c 'import json, sys; s = json.load(sys.stdin); print((s["found"] or [{"kind": "nothing"}])[0]["kind"], s["runs"])'
}

bad=0
for name; do
  finds=$(sed -n 's|^//! finds: ||p' "$here/$name.rs")
  within=${finds##* within }
  read -r kind runs < <(explore "$name" needs "$within")
  verdict=found
  case " ${finds% within *} " in *" $kind "*) ;; *) verdict='NOT FOUND' bad=1 ;; esac
  printf '%-36s %-9s %s after %s schedules\n' "$name" "$verdict" "$kind" "$runs"
  if grep -q '^//! fixed: ' "$here/$name.rs"; then
    read -r kind runs < <(explore "$name" fixed "${RUNS:-100000}")
    verdict=clean
    [ "$kind" = nothing ] || verdict=FAILS bad=1
    printf '%-36s %-9s %s in %s schedules\n' "  fixed" "$verdict" "$kind" "$runs"
  fi
done
exit $bad
