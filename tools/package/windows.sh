#!/usr/bin/env bash
# Makes the zip for Windows x86-64, cross-built as tools/windows does; its SHA-256 sum beside it.
#
#   tools/package/windows.sh [FOLDER]      FOLDER is target/packages when absent
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$(realpath -m "${1:-target/packages}")
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
name=waylay-$version-x86_64-windows
moment=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
source tools/windows/toolchain.sh
install_windows_packages

echo "--- build"
cargo_windows build --release --locked -p waylay --bins
cargo_windows build --release --locked -p waylay-randomizer --bins

# Not before: build scripts would see it and build again.
export SOURCE_DATE_EPOCH=$moment

echo "--- layout"
tree=$out/$name
rm -rf "$tree"
mkdir -p "$out"
source tools/package/layout.sh
lay_out "$tree" "$windows_dir/$windows_target/release" .exe "" .dll
# Plugins in C and C++ need mingw's runtimes, which no Windows has.
for library in libstdc++-6.dll libgcc_s_seh-1.dll libwinpthread-1.dll; do
  install -m 644 "$(x86_64-w64-mingw32-g++-posix -print-file-name="$library")" "$tree/lib/waylay/"
done

echo "--- archive"
python3 - "$out" "$name" <<'PYTHON'
import os, sys, time, zipfile

out, name = sys.argv[1:]
# A zip knows no time before 1980 and no finer one than two seconds.
moment = time.gmtime(max(int(os.environ["SOURCE_DATE_EPOCH"]), 315532800))[:6]
with zipfile.ZipFile(f"{out}/{name}.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
    paths = [os.path.join(folder, file) for folder, _, files in os.walk(f"{out}/{name}") for file in files]
    for path in sorted(paths):
        entry = zipfile.ZipInfo(os.path.relpath(path, out), moment)
        entry.compress_type = zipfile.ZIP_DEFLATED
        with open(path, "rb") as file:
            archive.writestr(entry, file.read())
PYTHON
rm -rf "$tree"
(cd "$out" && sha256sum -- "$name.zip" | tee "$name.zip.sha256")
