# What of the tests runs on Windows: for tools/windows/test.sh, under Wine, and for .github/workflows/windows.yml.

# Every crate, but for the library of strict mode on Linux (waylay-control), what makes broken ELF files
# (waylay-broken-plugins), engines that run on Linux (waylay-fleet) and the plugins, which are built with the command.
crates=(waylay-abi waylay-dist waylay-plugin waylay-page waylay-interrupt waylay-leaks waylay-schedule waylay-patch waylay-control-protocol
  waylay-scheduler waylay-accesses waylay-runtime waylay-control-windows waylay-host waylay-evidence waylay-randomizer
  waylay-findings waylay-report waylay-driver waylay-history waylay-explore waylay-compare waylay-melting-pot waylay-service waylay)
# Their tests in files of their own; docs/platforms.md says which are left to Linux, and why. A test that can run on one
# system only says so in its file.
tests=(
  golden problems ranges boundary shapes replay systematic starvation handover pe # pure code, shared memory
  config_problems config_reading renderers folders nights survival http           # configurations, reports, history, pages
  in_process windows_strict windows_memory portable                               # strict mode
  bound command bad_input history kinds melting_pot reports                       # the command, as on Linux
  windows windows_service                                                         # what only Windows has
)

# The arguments of `cargo test` for all of that.
all_of_it=(--lib)
for crate in "${crates[@]}"; do all_of_it+=(-p "$crate"); done
for test in "${tests[@]}"; do all_of_it+=(--test "$test"); done
