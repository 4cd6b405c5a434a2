#!/usr/bin/env bash
# Runs one Windows program under Wine, with a limit, and leaves no process of it behind: neither a hang nor a process
# that keeps a pipe open may hold up a build.
#
# A Windows program that outlives the test that started it is a failure: no orphan survives, also under Wine.
said=$(mktemp)
trap 'rm -f "$said"' EXIT
# Every process that the program starts inherits this mark.
mark=$$-$(date +%s%N)

run() {
  WAYLAY_WINE_RUN=$mark timeout --kill-after=10 "${WAYLAY_WINDOWS_LIMIT:-300}" wine "$@" 2> >(tee "$said" |
    grep -v -e 'wine32 is missing' -e 'multiarch needs to be enabled' -e 'dpkg --add-architecture i386' \
      -e 'apt-get install wine32' >&2)
}

# The processes of this run that still are there, but for Wine's own services, which stay for a while.
left_behind() {
  local environment process
  for environment in $(grep -lsza "^WAYLAY_WINE_RUN=$mark\$" /proc/[0-9]*/environ); do
    process=${environment%/environ}
    case $(readlink "$process/exe") in */wineserver*) continue ;; */wine*) ;; *) continue ;; esac
    grep -qsiaF 'C:\windows\' "$process/cmdline" || echo "${process#/proc/}"
  done
}

run "$@"
status=$?
# Wine's server now and then drops a program that is just starting, before it has a number. Nothing of it ran.
if [ "$status" -ne 0 ] && sleep 0.2 && grep -q '^wine client error:0:' "$said"; then
  echo "Wine lost the program while it started: once more" >&2
  run "$@"
  status=$?
fi

# What was ended a moment ago needs one to go away.
for _ in {1..50}; do
  left=$(left_behind)
  [ -z "$left" ] && break
  sleep 0.1
done
for process in $left; do
  name=$(tr '\0' ' ' <"/proc/$process/cmdline")
  if grep -qsi '/ntdll\.dll$' "/proc/$process/maps"; then
    echo "left behind, and killed now: $name" >&2
    [ "$status" -ne 0 ] || status=1
  else
    # A process that was ended before it had loaded the first library. Wine's server has forgotten it, and it waits for
    # the server's answer on a pipe that it holds open itself.
    echo "killed, as Wine did not: $name" >&2
  fi
  kill -9 "$process" 2>/dev/null
done
exit "$status"
