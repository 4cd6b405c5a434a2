#!/usr/bin/env bash
# Builds Waylay for Windows and runs its tests under Wine. Runs on a fresh Debian machine: bash tools/windows/test.sh
#
# Arguments, if any, go to `cargo test` in place of the whole list: tools/windows/test.sh -p waylay-page --lib
set -euo pipefail
cd "$(dirname "$0")/../.."
# Browsers, debuggers and compilers of this machine are none that a Windows program could start.
unset WAYLAY_REQUIRE_REAL_PROGRAMS
source tools/windows/toolchain.sh
source tools/windows/test_runner.sh

# Every crate, but for the library of strict mode on Linux (waylay-control), what makes broken ELF files
# (waylay-broken-plugins), engines that run on Linux (waylay-fleet) and the plugins, which are built with the command.
crates=(waylay-abi waylay-dist waylay-plugin waylay-page waylay-interrupt waylay-leaks waylay-schedule waylay-patch waylay-control-protocol
  waylay-scheduler waylay-accesses waylay-runtime waylay-control-windows waylay-host waylay-evidence waylay-randomizer
  waylay-findings waylay-report waylay-driver waylay-history waylay-explore waylay-compare waylay-melting-pot waylay-service waylay)
# Their tests in files of their own; docs/platforms.md says which are left to Linux, and why. A test that can run on one
# system only says so in its file.
tests=(
  golden problems ranges boundary shapes replay systematic starvation handover pe # pure code, shared memory
  config_problems config_reading renderers folders nights survival http           # configurations, reports, history, pages
  in_process windows_strict windows_memory portable                               # strict mode
  bound command bad_input history kinds melting_pot reports                       # the command, as on Linux
  windows windows_service                                                         # what only Windows has
)

echo "--- packages"
install_windows_packages
echo "--- Wine prefix"
make_wine_prefix
trap 'wineserver -k >/dev/null 2>&1 || true' EXIT
make_narrow_library
make_microsoft_program
make_reporting_program
echo "--- the runner of the tests"
test_runner

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
