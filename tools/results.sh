#!/usr/bin/env bash
# Makes docs/results.md: every comparison of the zoo, the randomizer against its bound, and five ways of running tests.
# Takes about an hour on two cores. What was interrupted goes on where it was: the trials are kept in waylay-out/compare.
set -euo pipefail
cd "$(dirname "$0")/.."

page=docs/results.md
part=$(mktemp)
trap 'rm -f "$part"' EXIT

cargo build --release
target/release/waylay compare configs/compare/zoo.toml configs/compare/table3.toml configs/compare/stealers.toml \
  --markdown "$page"

cargo bench -p waylay-randomizer --bench bound -- --markdown "$part"
cat >>"$page" <<'TEXT'

## The randomizer against its bound

After appendix I of "Testing Concurrency Runtime via a Stochastic Stress Framework": a bug of depth one whose two events lie a
millisecond apart, 600 iterations each, with 95 % intervals (`cargo bench -p waylay-randomizer --bench bound`).

TEXT
cat "$part" >>"$page"
cat >>"$page" <<'TEXT'

The share falls as 1/N, as the paper says: one thread is suspended at a time, and with N threads the right one in one of N
times. The bound counts only suspensions that begin within the shortest test; those that began before count as well, which is why
the share is about twice the bound.
TEXT

cargo bench -p waylay --bench ways -- --markdown "$part"
cat >>"$page" <<'TEXT'

## Ways of running the same tests

After section 5.2.1 of the same paper, which found two bugs by repeating functional tests and most others with distributions,
combined tests and randomized threads. Every way has two seconds for each of 34 tests with a bug, on real campaigns with evidence
for each failure; a test is retired with its first (`cargo bench -p waylay --bench ways`).

TEXT
cat "$part" >>"$page"
cat >>"$page" <<'TEXT'

The order is the paper's: what is drawn finds more than what is fixed, the pot finds what needs two tests at once, the randomizer
what needs a thread to be late. Strict mode finds the rest because most of these bugs need a switch between two accesses that are
nanoseconds apart; none of them is a long-lived state that only a long-running mix would reach, which is where a pot is at its best.
TEXT
echo "wrote $page"
