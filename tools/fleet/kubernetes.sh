#!/usr/bin/env bash
# Validates the manifests of `waylay fleet run --on kubernetes` against the published schemas, strictly: a field that does not exist,
# a wrong type or a missing field is an error. There is no live cluster in this: that is not tried here.
#
#   tools/fleet/kubernetes.sh           takes kubernetes-validate from PyPI where it is not installed
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
waylay=${WAYLAY:-$here/target/release/waylay}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if ! command -v kubernetes-validate >/dev/null; then
  # Beside the system's packages and not among them.
  python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --target "$folder/python" \
    kubernetes-validate==1.37.0
  export PYTHONPATH="$folder/python" PATH="$folder/python/bin:$PATH"
fi
# With results on a volume, and in a bucket.
"$waylay" fleet run --on kubernetes --shards 16 --at-most 4 --dry-run "$here/configs/default.toml" >"$folder/volume.list"
"$waylay" fleet run --on kubernetes --shards 16 --bucket s3://nights/one --dry-run "$here/configs/default.toml" >"$folder/bucket.list"
# The schemas know single objects; lists are unpacked.
python3 - "$folder" <<'UNPACK'
import glob, json, sys
folder = sys.argv[1]
items = [item for name in sorted(glob.glob(f"{folder}/*.list")) for item in json.load(open(name))["items"]]
for number, item in enumerate(items):
    json.dump(item, open(f"{folder}/{number}.json", "w"))
UNPACK
for file in "$folder"/[0-9].json; do
  kubernetes-validate --strict "$file"
done
# What is wrong is noticed: otherwise the lines above say nothing.
sed 's/"completions"/"compleations"/' "$folder/0.json" >"$folder/wrong.json"
if kubernetes-validate --strict "$folder/wrong.json" >/dev/null 2>&1; then
  echo "a field that does not exist is not noticed" >&2
  exit 1
fi
