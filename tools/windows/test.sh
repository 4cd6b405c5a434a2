#!/usr/bin/env bash
# Builds Waylay for Windows and runs its tests under Wine. Runs on a fresh Debian machine: bash tools/windows/test.sh
#
# Arguments, if any, go to `cargo test` in place of the whole list: tools/windows/test.sh -p waylay-page --lib
set -euo pipefail
cd "$(dirname "$0")/../.."
source tools/windows/toolchain.sh

# What passes under Wine as a whole; docs/platforms.md says what else runs there.
crates=(waylay-dist waylay-plugin waylay-patch waylay-schedule waylay-scheduler waylay-accesses waylay-control-protocol waylay-control-windows
  waylay-explore waylay-leaks waylay-page waylay-randomizer waylay-host waylay)
# Their tests in files of their own. Left to Linux: long statistics on pure code, and what starts a compiler, because
# there is none under Wine.
tests=(golden problems ranges boundary shapes replay systematic starvation handover windows windows_service
  in_process pe windows_strict windows_memory portable)

echo "--- packages"
install_windows_packages
echo "--- Wine prefix"
make_wine_prefix
make_narrow_library
make_microsoft_program
make_reporting_program
trap 'wineserver -k >/dev/null 2>&1 || true' EXIT

if [ $# -eq 0 ]; then
  set -- --lib
  for crate in "${crates[@]}"; do set -- "$@" -p "$crate"; done
  for test in "${tests[@]}"; do set -- "$@" --test "$test"; done
fi
echo "--- build"
cargo_windows test --no-run "$@"
echo "--- tests under $(wine --version 2>/dev/null)"
log=$windows_dir/tests.log
cargo_windows test --no-fail-fast "$@" 2>&1 | tee "$log"

# A run in which nothing ran is not a success.
ran=$(sed -n 's/^test result: .* \([0-9]*\) passed; .*/\1/p' "$log" | awk '{ sum += $1 } END { print sum + 0 }')
if [ "$ran" -eq 0 ]; then
  echo "no test ran" >&2
  exit 1
fi
echo "--- $ran tests passed under Wine"
