#!/usr/bin/env bash
# Makes packages: a tar.zst and a .deb for Linux x86-64, a zip for Windows x86-64; SHA-256 sums and an SBOM beside them.
#
#   tools/package.sh [linux|windows] [FOLDER]      linux, and target/packages, when absent
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
system=${1:-linux}
case $system in
  linux | windows) exec "$here/package/$system.sh" "${@:2}" ;;
  *) echo "there are packages for linux and windows, not for \`$system\`" >&2 && exit 2 ;;
esac
