# SPDX-License-Identifier: Apache-2.0
"""Writes what the packages say of the software that they contain: licences and an SBOM (SPDX 2.3), for scripts/package.

usage: contents.py ROOT ARCH VERSION FOLDER    fills FOLDER/licenses and FOLDER/sbom.spdx.json from bundled.toml
"""

import datetime
import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from sources import origin_of, table

NOT_SAID = "NOASSERTION"

Document = dict[str, Any]


def licence_text(root: Path, place: str) -> str:
    """The text of a file; or, for FILE#LICENCE, the text of that licence alone in a copyright file of Debian."""
    file, _, licence = place.partition("#")
    text = (root / file).read_text()
    if not licence:
        return text
    head = f"License: {licence}\n"
    longest = max((part for part in text.split("\n\n") if part.startswith(head)), key=len)
    return "\n".join(line.strip().removeprefix(".") for line in longest.splitlines()[1:]) + "\n"


def spdx_id(name: str) -> str:
    return "SPDXRef-" + "".join(c if c.isalnum() or c in ".-" else "-" for c in name)


def package(name: str, version: str, licence: str, home: str, origin: str, sha256: str | None) -> Document:
    result: Document = {
        "SPDXID": spdx_id(name),
        "name": name,
        "versionInfo": version,
        "downloadLocation": NOT_SAID,  # of many mirrors
        "filesAnalyzed": False,
        "licenseConcluded": licence,
        "licenseDeclared": licence,
        "copyrightText": NOT_SAID,
    }
    if home:
        result["homepage"] = home
    if origin:
        result["sourceInfo"] = origin
    if sha256:
        result["checksums"] = [{"algorithm": "SHA256", "checksumValue": sha256}]
    return result


def packages_and_relations() -> tuple[list[Document], list[tuple[str, str, str]]]:
    """A package for each row and for each later file of one, which is a patch; and how they hang together."""
    packages: list[Document] = []
    relations: list[tuple[str, str, str]] = []
    rows = {row["name"]: row for row in table()}
    for row in rows.values():
        name = row["name"]
        source = rows[row["part_of"]] if "part_of" in row else row
        files = list(source["files"].items())
        licence = row["licence"]
        first, sha256 = files[0]
        packages.append(package(name, row["version"], licence, row["home"], origin_of(first), sha256))
        relations.append((spdx_id(name), "STATIC_LINK", "SPDXRef-servetune"))
        if "part_of" in row:
            relations.append((spdx_id(source["name"]), "CONTAINS", spdx_id(name)))
            continue
        for patch, patch_sha256 in files[1:]:
            patch_name = f"{name}-debian-patches"
            packages.append(package(patch_name, row["version"], NOT_SAID, "", origin_of(patch), patch_sha256))
            relations.append((spdx_id(patch_name), "PATCH_FOR", spdx_id(name)))
    return packages, relations


def document(arch: str, version: str, programs: list[Path]) -> Document:
    """The SBOM of these programs. Its address has their hash in it: it is another one when they are."""
    made = hashlib.sha256(b"".join(path.read_bytes() for path in programs)).hexdigest()
    created = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    packages, relations = packages_and_relations()
    ours = package("servetune", version, "Apache-2.0", "", "", None) | {"primaryPackagePurpose": "APPLICATION"}
    related = [("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-servetune"), *relations]
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"servetune-{version}-linux-{arch}",
        "documentNamespace": f"https://spdx.org/spdxdocs/servetune-{version}-linux-{arch}-{made}",
        "creationInfo": {
            "created": created.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "creators": [f"Tool: servetune-scripts-package-{version}"],
        },
        "packages": [ours, *packages],
        "relationships": [
            {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}
            for one, kind, other in related
        ],
    }


def main() -> None:
    root, arch, version, folder = Path(sys.argv[1]), sys.argv[2], sys.argv[3], Path(sys.argv[4])
    licences = folder / "licenses"
    licences.mkdir(parents=True, exist_ok=True)
    for row in table():
        (licences / row["name"]).write_text(licence_text(root, row["licence_text"]))
    programs = sorted((root / arch / "build/bin").iterdir())
    text = json.dumps(document(arch, version, programs), indent=1)
    (folder / "sbom.spdx.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
