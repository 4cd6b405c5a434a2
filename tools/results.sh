#!/usr/bin/env bash
# Makes docs/results.md: every comparison of the zoo, the randomizer against its bound, and five ways of running tests.
# Takes about 45 minutes on two cores. `reading` in the comparisons, and the sentences below, speak of the run of 2026-11-17:
# compare them with the new tables, and write what they show. What was interrupted goes on where it was: the trials are kept in
# waylay-out/compare.
set -euo pipefail
cd "$(dirname "$0")/.."

page=docs/results.md
part=$(mktemp)
trap 'rm -f "$part"' EXIT

cargo build --release
target/release/waylay compare configs/compare/zoo.toml configs/compare/idiom.toml configs/compare/table3.toml configs/compare/stealers.toml \
  --markdown "$page"
sed -i 's|^    waylay compare .*|    tools/results.sh|' "$page"

cargo bench -p waylay-randomizer --bench bound -- --markdown "$part"
cat >>"$page" <<'TEXT'

## The randomizer against its bound

After appendix I of "Testing Concurrency Runtime via a Stochastic Stress Framework": a bug of depth one whose two events lie a
millisecond apart, 600 iterations each, with 95 % intervals (`cargo bench -p waylay-randomizer --bench bound`). The measured
share is at least twice the bound with any number of threads.

TEXT
cat "$part" >>"$page"

cargo bench -p waylay --bench ways -- --markdown "$part"
cat >>"$page" <<'TEXT'

## Ways of running the same tests

After section 5.2.1 of the same paper, which found two bugs by repeating functional tests. Every way has two seconds for each of
34 tests with a bug, on real campaigns with evidence for each failure; a test is retired with its first (`cargo bench -p waylay
--bench ways`). Each way finds what the one before it finds and more, but for `overdrawn`, which the second did not find; strict mode
finds everything, in a sixth of the time.

TEXT
cat "$part" >>"$page"
echo "wrote $page"
