# The layout of an installed copy, for sourcing: the same tree on both systems.
#
#   bin/                waylay, waylay-randomizer, waylay-bucket (Linux), cargo-waylay
#   lib/waylay/         the control library and the plugins that come along
#   share/waylay/       headers and CMake package (find_package finds it under the prefix), configurations; on Linux their schemas
#   share/doc/waylay/   documentation, licences, changes

# lay_out TREE BUILD EXECUTABLE_SUFFIX LIBRARY_PREFIX LIBRARY_SUFFIX
lay_out() {
  local tree=$1 build=$2 exe=$3 prefix=$4 suffix=$5 command library
  mkdir -p "$tree/bin" "$tree/lib/waylay" "$tree/share/waylay" "$tree/share/doc/waylay"
  for command in waylay waylay-randomizer waylay-bucket cargo-waylay; do
    if [ -e "$build/$command$exe" ]; then install -m 755 "$build/$command$exe" "$tree/bin/"; fi
  done
  # Build products of other crates have a hash in their names, and those of waylay that nobody loads have none here.
  for library in "$build/deps/${prefix}waylay_"*"$suffix"; do
    case $library in
      *-*"$suffix" | *broken*) ;;
      *control_windows*) if [ "$suffix" = .dll ]; then install -m 644 "$library" "$tree/lib/waylay/"; fi ;;
      *) install -m 644 "$library" "$tree/lib/waylay/" ;;
    esac
  done
  cp -r framework/abi/include framework/abi/cmake configs "$tree/share/waylay/"
  cp README.md LICENSE-MIT LICENSE-APACHE "$tree/share/doc/waylay/"
  # As in the sources, so that links between pages hold.
  cp -r docs "$tree/share/doc/waylay/"
  if [ -e CHANGELOG.md ]; then cp CHANGELOG.md "$tree/share/doc/waylay/"; fi
  find "$tree" -type d -exec chmod 755 {} +
  find "$tree/share" -type f -exec chmod 644 {} +
}
