#!/usr/bin/env bash
# Uses the packages for Linux as people would: unpacked twice in different places, installed with dpkg in a clean root and
# removed, installed by Cargo. Needs root for the clean root.
#
#   tools/package/test.sh [FOLDER]      FOLDER holds the packages: target/packages when absent
set -euo pipefail
cd "$(dirname "$0")/../.."
packages=$(realpath "${1:-target/packages}")
work=$(mktemp -d)
clean=$work/clean
finish() {
  if mountpoint -q "$clean/proc"; then umount "$clean/proc"; fi
  rm -rf "$work"
}
trap finish EXIT

# Two threads that add to a number without a lock: what a copy has to find with nothing but itself.
cat >"$work/account.c" <<'PROGRAM'
#include <assert.h>
#include <pthread.h>
static int balance;
static void *deposit(void *unused) {
  int seen = *(volatile int *)&balance;
  *(volatile int *)&balance = seen + 1;
  return unused;
}
int main(void) {
  pthread_t other;
  pthread_create(&other, 0, deposit, 0);
  deposit(0);
  pthread_join(other, 0);
  assert(balance == 2);
  return 0;
}
PROGRAM
cc -g -O1 -pthread -o "$work/account" "$work/account.c"

# try NAME COMMAND…: the command of a copy finds the bug, knows its plugins and sees leaks.
try() {
  local name=$1 code=0
  shift
  echo "--- $name"
  "$@" explore --runs 2000 --stop-on-first --quiet --out /tmp/waylay-package-test -- "$account" 2>/dev/null || code=$?
  [ $code = 1 ] || { echo "$name: explore ended with $code, not with the failure it has to find" >&2 && exit 1; }
  "$@" list 2>/dev/null | grep -q deadlock || { echo "$name: the plugins that come along are not found" >&2 && exit 1; }
  "$@" doctor 2>&1 | grep 'control library' | grep -qv missing || { echo "$name: no control library" >&2 && exit 1; }
}

account=$work/account
for place in "$work/here" "$work/a place with blanks"; do
  mkdir -p "$place"
  tar --zstd -xf "$packages"/waylay-*-linux.tar.zst -C "$place" --strip-components=1
  try "unpacked in ${place##*/}" "$place/bin/waylay"
done
for file in bin/waylay-randomizer bin/waylay-bucket bin/cargo-waylay lib/waylay/libwaylay_control.so share/waylay/include/waylay.h \
  share/waylay/cmake/WaylayConfig.cmake share/waylay/configs/default.toml share/waylay/schema/waylay.schema.json \
  share/man/man1/waylay.1.gz share/bash-completion/completions/waylay share/doc/waylay/docs/SUMMARY.md; do
  [ -e "$work/here/$file" ] || { echo "the archive has no $file" >&2 && exit 1; }
done
# A copy without its libraries brings them along; one whose cache cannot be made says what it lacks and where it looked.
cp "$work/here/bin/waylay" "$work/alone"
try "the command alone" env XDG_CACHE_HOME="$work/cache" "$work/alone"
said=$(env -u HOME -u XDG_CACHE_HOME "$work/alone" explore -- "$account" 2>&1 || true)
case $said in *libwaylay_control.so*looked*) ;; *) echo "a copy that lacks its libraries says: $said" >&2 && exit 1 ;; esac

echo "--- cargo install"
cargo install --quiet --locked --offline --path tools/waylay --root "$work/cargo" 2>/dev/null
try "installed by Cargo" env XDG_CACHE_HOME="$work/cache-cargo" "$work/cargo/bin/waylay"

echo "--- a clean root"
command -v debootstrap >/dev/null || { apt-get update -qq && apt-get install -y -qq --no-install-recommends debootstrap >/dev/null; }
# The mirror that this machine uses.
mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.{sources,list} 2>/dev/null |
  sed -n 's/#.*//; s/^\(URIs:\|deb\) .*\(https\{0,1\}:[^ ]*\).*/\2/p' | grep -v security | head -n 1 || true)
debootstrap --variant=minbase --include=libstdc++6 bookworm "$clean" "$mirror" >"$work/debootstrap.log" 2>&1 ||
  { tail -n 20 "$work/debootstrap.log" >&2 && exit 1; }
mount -t proc proc "$clean/proc"
cp "$packages"/waylay_*_amd64.deb "$work/account" "$clean/root/"
find "$clean/usr" | sort >"$work/before"
chroot "$clean" sh -c 'dpkg -i /root/waylay_*_amd64.deb' >/dev/null
account=/root/account
try "installed with dpkg" chroot "$clean" waylay
chroot "$clean" dpkg -r waylay >/dev/null
find "$clean/usr" | sort | diff "$work/before" - || { echo "the package leaves files behind" >&2 && exit 1; }

echo "--- the packages work: unpacked, moved, alone, by Cargo, by dpkg"
