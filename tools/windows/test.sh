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
source tools/windows/what_runs.sh

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
  set -- "${all_of_it[@]}"
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
