#!/usr/bin/env bash
# Makes the packages for Linux x86-64: a tar.zst that runs wherever it is unpacked, a .deb, their SHA-256 sums and an SBOM.
#
#   tools/package/linux.sh [FOLDER]        FOLDER is target/packages when absent
#
# The same inputs give the same bytes: names are sorted, owners are root, times are the commit's (or SOURCE_DATE_EPOCH).
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$(realpath -m "${1:-target/packages}")

# The oldest glibc that the packages support. What the files ask for is checked below: a symbol that is newer fails the build.
oldest_glibc=2.35
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
name=waylay-$version-x86_64-linux
moment=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}

echo "--- build"
cargo build --release --locked -p waylay --bins
cargo build --release --locked -p waylay-randomizer --bins
cargo build --release --locked -p waylay-bucket --bins

# Not before: build scripts would see it and build again.
export SOURCE_DATE_EPOCH=$moment

echo "--- layout"
rm -rf "$out"
tree=$out/$name
source tools/package/layout.sh
lay_out "$tree" target/release "" lib .so
waylay=$tree/bin/waylay

mkdir -p "$tree/share/man/man1" "$tree/share/bash-completion/completions" "$tree/share/zsh/site-functions" \
  "$tree/share/fish/vendor_completions.d"
"$waylay" man --into "$tree/share/man/man1" 2>/dev/null
gzip -9n "$tree"/share/man/man1/*.1
# Editors find what a configuration may hold there.
mkdir -p "$tree/share/waylay/schema"
"$waylay" config schema >"$tree/share/waylay/schema/waylay.schema.json"
"$waylay" config schema --service >"$tree/share/waylay/schema/service.schema.json"
"$waylay" completions bash >"$tree/share/bash-completion/completions/waylay"
"$waylay" completions zsh >"$tree/share/zsh/site-functions/_waylay"
"$waylay" completions fish >"$tree/share/fish/vendor_completions.d/waylay.fish"

echo "--- the oldest glibc"
newest=$(find "$tree" -type f \( -path '*/bin/*' -o -name '*.so' \) -print0 | xargs -0 -n 1 objdump -T 2>/dev/null |
  sed -n 's/.*(\?GLIBC_\([0-9][0-9.]*\)).*/\1/p' | sort -uV | tail -n 1)
if [ "$(printf '%s\n' "$newest" "$oldest_glibc" | sort -V | tail -n 1)" != "$oldest_glibc" ]; then
  echo "a symbol of glibc $newest is used; the packages promise $oldest_glibc" >&2
  exit 1
fi
echo "symbols up to $newest are used; glibc $oldest_glibc is promised"

echo "--- SBOM"
python3 tools/package/sbom.py "$version" x86_64-unknown-linux-gnu >"$out/waylay-$version.cdx.json"
cp "$out/waylay-$version.cdx.json" "$tree/share/doc/waylay/sbom.cdx.json"

echo "--- archive"
tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=gnu -C "$out" -cf - "$name" |
  zstd -q -12 -T1 -o "$out/$name.tar.zst"

echo "--- .deb"
root=$out/root
mkdir -p "$root/DEBIAN"
cp -a "$tree" "$root/usr"
# What the command and the plugins link: glibc, gcc's runtime and that of C++.
size=$(du -sk --apparent-size "$root/usr" | cut -f1)
cat >"$root/DEBIAN/control" <<CONTROL
Package: waylay
Version: $version
Architecture: amd64
Maintainer: The Waylay maintainers <maintainers@localhost>
Section: devel
Priority: optional
Installed-Size: $size
Depends: libc6 (>= $oldest_glibc), libgcc-s1, libstdc++6
Recommends: gdb
Description: finds concurrency bugs in native code
 Runs tests again and again on many threads, puts the threads where they
 least want to be, and keeps evidence of what breaks: stacks, a dump, the
 schedule, and a line that runs it again.
CONTROL
find "$root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
dpkg-deb --root-owner-group -Zzstd -z12 --build "$root" "$out/waylay_${version}_amd64.deb" >/dev/null
rm -rf "$root" "$tree"

(cd "$out" && sha256sum -- *.tar.zst *.deb *.cdx.json >SHA256SUMS && cat SHA256SUMS)
