#!/usr/bin/env bash
# Runs one Windows program under Wine, with a limit: a hang is a failure, not a stuck build.
said=$(mktemp)
trap 'rm -f "$said"' EXIT

run() {
  timeout --kill-after=10 "${WAYLAY_WINDOWS_LIMIT:-300}" wine "$@" 2> >(tee "$said" | grep -v -e 'wine32 is missing' \
    -e 'multiarch needs to be enabled' -e 'dpkg --add-architecture i386' -e 'apt-get install wine32' >&2)
}

run "$@"
status=$?
# Wine's server now and then drops a program that is just starting, before it has a number. Nothing of it ran.
if [ "$status" -ne 0 ] && sleep 0.2 && grep -q '^wine client error:0:' "$said"; then
  echo "Wine lost the program while it started: once more" >&2
  run "$@"
  status=$?
fi
exit "$status"
