# Tests of runner.sh, for sourcing behind toolchain.sh: a process that is left behind is ended, named and a failure, and
# whoever reads the output is not kept waiting.

runner_problem() {
  echo "tools/windows/runner.sh: $1" >&2
  return 1
}

test_runner() {
  local program=$windows_dir/left_behind.exe output status=0 start=$SECONDS
  x86_64-w64-mingw32-gcc-posix -O1 -Wall -Wextra -Werror tools/windows/left_behind.c -o "$program"
  # The reader of this output waits for its end, as that of a build does.
  output=$(tools/windows/runner.sh "$program" 2>&1) || status=$?
  [ "$status" -eq 1 ] || runner_problem "exit code $status, not 1, with a process left behind: $output"
  [[ $output == *"the first one ends"* ]] || runner_problem "the output is missing: $output"
  [[ $output == *"left behind, and killed now: "*left_behind.exe* ]] || runner_problem "not named: $output"
  # As Wine leaves one that was ended while it started: its loader, which has loaded no library of Windows yet.
  local folder=$windows_dir/stuck
  mkdir -p "$folder"
  cp "$(command -v sleep)" "$folder/wine64"
  printf '#!/bin/sh\n"%s/wine64" 60 &\necho started\n' "$folder" >"$folder/wine"
  chmod +x "$folder/wine"
  status=0
  output=$(PATH=$folder:$PATH tools/windows/runner.sh any.exe 2>&1) || status=$?
  [ "$status" -eq 0 ] || runner_problem "exit code $status, though Wine left the process behind: $output"
  [[ $output == *started*"killed, as Wine did not: "*wine64* ]] || runner_problem "not told: $output"

  status=0
  output=$(tools/windows/runner.sh cmd /c 'exit 0' 2>&1) || status=$?
  [ "$status" -eq 0 ] || runner_problem "exit code $status where nothing was left behind: $output"
  status=0
  tools/windows/runner.sh cmd /c 'exit 7' >/dev/null 2>&1 || status=$?
  [ "$status" -eq 7 ] || runner_problem "exit code $status, not the 7 of the program"
  [ $((SECONDS - start)) -lt 50 ] || runner_problem "it waited for what was left behind"
}
