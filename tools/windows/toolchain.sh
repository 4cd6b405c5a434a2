# The cross tool chain and the Wine prefix, for sourcing: after it `cargo_windows` is Cargo for x86_64-pc-windows-gnu
# and `wine` runs what it built.
#
# rustup's tool chain has no standard library for Windows unless it can be downloaded; Debian's rustc-web comes with
# the sources of its standard library, which Cargo builds along. rustup's stays first on PATH and builds for Linux.

windows_target=x86_64-pc-windows-gnu
windows_dir=$PWD/target/windows

windows_packages=(rustc-web cargo-web rust-web-src wine64 wine clang lld
  gcc-mingw-w64-x86-64-posix g++-mingw-w64-x86-64-posix gcc-mingw-w64-i686-posix)

install_windows_packages() {
  local missing=()
  for package in "${windows_packages[@]}"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "the Windows tests need these Debian packages: ${missing[*]}" >&2
    return 1
  fi
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# A prefix of our own. It is made once; a half-made one is thrown away.
make_wine_prefix() {
  export WINEPREFIX=$windows_dir/wine WINEARCH=win64 WINEDEBUG=-all
  # No dialogs to install Mono or Gecko, no desktop entries.
  export WINEDLLOVERRIDES="mscoree=;mshtml=;winemenubuilder.exe="
  if [ ! -e "$WINEPREFIX/ready" ]; then
    rm -rf "$WINEPREFIX"
    mkdir -p "$windows_dir"
    wineboot --init >/dev/null 2>&1
    # C++ and threads of mingw, for plugins that link them.
    local library
    for library in libstdc++-6.dll libgcc_s_seh-1.dll libwinpthread-1.dll; do
      cp "$(x86_64-w64-mingw32-g++-posix -print-file-name="$library")" "$WINEPREFIX/drive_c/windows/system32/"
    done
    touch "$WINEPREFIX/ready"
  fi
  # In every run: a prefix may be older than the source.
  x86_64-w64-mingw32-gcc -O2 -Wall -Wextra -Werror -shared tools/windows/bcryptprimitives.c -ladvapi32 \
    -o "$WINEPREFIX/drive_c/windows/system32/bcryptprimitives.dll"
}

# A library for 32 bits, which plugins must not be.
make_narrow_library() {
  mkdir -p "$windows_dir"
  echo 'int answer(void) { return 42; }' | i686-w64-mingw32-gcc-posix -shared -x c -o "$windows_dir/narrow.dll" -
  export WAYLAY_NARROW_LIBRARY="Z:$windows_dir/narrow.dll"
}

# A program as Microsoft's tools make them: their calling of functions, their unwind information, a PDB file beside it.
make_microsoft_program() {
  local folder=$windows_dir/microsoft
  mkdir -p "$folder"
  clang --target=x86_64-pc-windows-msvc -O1 -g -gcodeview -Wall -Wextra -Werror -c tools/windows/account.c -o "$folder/account.obj"
  lld-link /nologo /entry:start /subsystem:console /nodefaultlib /debug "/out:$folder/account.exe" "/pdb:$folder/account.pdb" \
    "$folder/account.obj" /usr/x86_64-w64-mingw32/lib/libkernel32.a
  export WAYLAY_MICROSOFT_PROGRAM="Z:$folder/account.exe"
}

# A program whose compiler reports accesses, as `waylay cflags` says.
make_reporting_program() {
  local flags=(-g -fsanitize=thread --param=tsan-instrument-func-entry-exit=0 --param=tsan-distinguish-volatile=1 -Wno-tsan)
  mkdir -p "$windows_dir"
  x86_64-w64-mingw32-gcc-posix -O1 "${flags[@]}" -c tools/windows/lost_update.c -o "$windows_dir/lost_update.o"
  x86_64-w64-mingw32-gcc-posix -O1 "$windows_dir/lost_update.o" framework/abi/include/waylay_steps.c -o "$windows_dir/lost_update.exe"
  export WAYLAY_REPORTING_PROGRAM="Z:$windows_dir/lost_update.exe"
}

cargo_windows() {
  local command=$1
  shift
  # The standard library is part of the build; without any optimisation the statistical tests take minutes. Optimising
  # across the parts of a crate, describing libraries for debuggers and preparing the next build cost a quarter of the time.
  env CARGO_PROFILE_DEV_OPT_LEVEL=1 CARGO_PROFILE_DEV_LTO=off CARGO_INCREMENTAL=0 \
    RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR="$windows_dir" \
    CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER=x86_64-w64-mingw32-gcc-posix \
    CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER="$PWD/tools/windows/runner.sh" \
    CC_x86_64_pc_windows_gnu=x86_64-w64-mingw32-gcc-posix CXX_x86_64_pc_windows_gnu=x86_64-w64-mingw32-g++-posix \
    AR_x86_64_pc_windows_gnu=x86_64-w64-mingw32-ar \
    /usr/bin/cargo "$command" -Zbuild-std=std,panic_unwind --target "$windows_target" \
    --config 'profile.dev.package."*".debug=false' "$@"
}
