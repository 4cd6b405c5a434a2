#!/usr/bin/env bash
# Runs one Windows program under Wine, with a limit: a hang is a failure, not a stuck build.
exec timeout --kill-after=10 "${WAYLAY_WINDOWS_LIMIT:-300}" wine "$@" 2> >(grep -v -e 'wine32 is missing' \
  -e 'multiarch needs to be enabled' -e 'dpkg --add-architecture i386' -e 'apt-get install wine32' >&2)
