#!/usr/bin/env bash
# Builds one program of this folder against the version of the library that its head names, and prints where it is:
#   build.sh NAME [fixed]
# The head says `needs: CRATE VERSION [more of the table of the dependency]`, `fixed:` likewise where a fixed version is known, and
# `finds: KIND within N`: what the default finds, and in how many schedules with a chance of more than 1 - 1e-6; `asks: races`, that
# it is compiled as `waylay rustflags` (WAYLAY, default target/release/waylay) says and explored with --races.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
name=$1 line=${2:-needs}
read -r crate version more < <(sed -n "s|^//! $line: ||p" "$here/$name.rs") || true
[ -n "${version:-}" ] || { echo "$name.rs names no version after '$line:'" >&2; exit 2; }
work=${WAYLAY_FOUND:-$here/../../target/found}/$name-$line
mkdir -p "$work"
cat >"$work/Cargo.toml" <<END
[package]
name = "$name"
version = "0.0.0"
edition = "2024"
[workspace]
[[bin]]
name = "$name"
path = "$here/$name.rs"
[profile.dev]
opt-level = 1
[dependencies.$crate]
version = "${version%.*}"
${more:-}
END
# By --precise and not in the manifest, because versions with known bugs are often yanked.
cd "$work"
if ! grep -qsA1 "^name = \"$crate\"" Cargo.lock || ! grep -A1 "^name = \"$crate\"" Cargo.lock | grep -q "\"$version\""; then
  cargo update --quiet -p "$crate" --precise "$version" >&2
fi
if grep -q '^//! asks: races' "$here/$name.rs"; then
  target=x86_64-unknown-linux-gnu
  flags=$("${WAYLAY:-$here/../../target/release/waylay}" rustflags)
  RUSTFLAGS=$flags cargo build --quiet --target "$target" >&2
  printf '%s\n' "$work/target/$target/debug/$name"
else
  cargo build --quiet >&2
  printf '%s\n' "$work/target/debug/$name"
fi
