"""Prints the SBOM (CycloneDX 1.5) of a package: every crate that is linked into it, with version, licence and checksum.

    sbom.py VERSION TARGET
"""

import json
import subprocess
import sys
import tomllib


def linked(metadata):
    """The packages that the command and what it loads are made of; not those of tests and build scripts."""
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    names = {package["id"]: package["name"] for package in metadata["packages"]}
    todo = [one for one, name in names.items() if name in ("waylay", "waylay-randomizer", "waylay-bucket")]
    seen = set()
    while todo:
        one = todo.pop()
        if one in seen:
            continue
        seen.add(one)
        for dependency in nodes[one]["deps"]:
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                todo.append(dependency["pkg"])
    return seen


def main():
    version, target = sys.argv[1:]
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", target]
    metadata = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    with open("Cargo.lock", "rb") as file:
        checksums = {(one["name"], one["version"]): one.get("checksum") for one in tomllib.load(file)["package"]}
    wanted = linked(metadata)
    components = []
    for package in sorted(metadata["packages"], key=lambda one: (one["name"], one["version"])):
        if package["id"] not in wanted:
            continue
        identity = f"pkg:cargo/{package['name']}@{package['version']}"
        component = {"type": "library", "bom-ref": identity, "name": package["name"], "version": package["version"], "purl": identity}
        if package["license"]:
            component["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
        checksum = checksums.get((package["name"], package["version"]))
        if checksum:
            component["hashes"] = [{"alg": "SHA-256", "content": checksum}]
        components.append(component)
    product = {"type": "application", "bom-ref": "waylay", "name": "waylay", "version": version}
    document = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "metadata": {"component": product}, "components": components}
    json.dump(document, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
