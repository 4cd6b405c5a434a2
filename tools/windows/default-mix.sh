#!/usr/bin/env bash
# Runs `waylay` without arguments under Wine, as `cargo run` starts it, and checks what it found as `.ci/run` does on Linux.
# For a machine that has nothing else to do: the mix is measured by its time. tools/windows/test.sh builds what it runs.
set -euo pipefail
cd "$(dirname "$0")/../.."
source tools/windows/toolchain.sh
make_wine_prefix
trap 'wineserver -k >/dev/null 2>&1 || true' EXIT

root=$PWD
folder=$windows_dir/default-mix
rm -rf "$folder"
mkdir -p "$folder"
code=0
(cd "$folder" && "$root/tools/windows/runner.sh" "$windows_dir/$windows_target/debug/waylay.exe" --json >summary.json) || code=$?
python3 .ci/check_demo.py "$folder/summary.json" "$code" "$(echo "$folder"/waylay-out/*/failures)"
