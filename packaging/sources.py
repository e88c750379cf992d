# SPDX-License-Identifier: Apache-2.0
"""Fetches, checks and unpacks what bundled.toml lists, for scripts/package.

usage: sources.py ROOT     fills ROOT/download, ROOT/source/NAME, ROOT/headers and ROOT/zig
"""

import hashlib
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

from pip._internal.models.index import PyPI


def table() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = tomllib.loads((Path(__file__).parent / "bundled.toml").read_text())["package"]
    return rows


def origin_of(source: str) -> str:
    """Where a file of the table comes from, for people: a place that every mirror has."""
    registry, path = source.split(":", 1)
    return f"Debian's archive, pool/{path}" if registry == "debian" else f"PyPI, {path}"


def mirror() -> str:
    """Debian's archive: $DEBIAN_MIRROR, else the first that apt has."""
    if given := os.environ.get("DEBIAN_MIRROR"):
        return given.rstrip("/")
    # An archive of security updates has the label Debian-Security, and other vendors' have their own.
    words = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Origin: Debian", "Label: Debian"]
    try:
        found = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()
    except (OSError, subprocess.CalledProcessError):
        found = []
    if not found:
        sys.exit("apt has no archive of Debian among its sources: set DEBIAN_MIRROR to one")
    return found[0].rstrip("/")


def file_of_index(project: str, name: str) -> str:
    """Where pip's index has the file `name` of `project`: read from the index's list, because pip builds
    what it downloads as source only to learn its name."""
    index = os.environ.get("PIP_INDEX_URL", "")
    if not index:
        words = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
        index = subprocess.run(words, capture_output=True, text=True).stdout.strip() or PyPI.simple_url
    request = urllib.request.Request(
        f"{index.rstrip('/')}/{project}/",
        headers={"Accept": "application/vnd.pypi.simple.v1+json, text/html;q=0.1"},
    )
    with urllib.request.urlopen(request, timeout=120) as answer:
        page, where, kind = answer.read().decode(), answer.url, answer.headers.get_content_type()
    if kind.endswith("json"):
        links = [file["url"] for file in json.loads(page)["files"]]
    else:
        links = [html.unescape(link) for link in re.findall(r'href="([^"]+)"', page)]
    for link in links:
        if link.split("#")[0].rsplit("/", 1)[-1] == name:
            return urllib.parse.urljoin(where, link)
    sys.exit(f"{where} has no file {name}: raise the row in packaging/bundled.toml")


def fetch(source: str, wanted: str, folder: Path) -> Path:
    """The file of `source` in `folder`, with the SHA-256 `wanted`; exits with what to do where it cannot be had."""
    registry, path = source.split(":", 1)
    file = folder / path.rsplit("/", 1)[1]
    if not file.exists():
        print(f"fetching {file.name}", flush=True)
        part = file.with_suffix(".part")
        place = registry
        try:
            if registry == "debian":
                place = f"{mirror()}/pool/{path}"
            else:
                place = file_of_index(path.split("==")[0], file.name)
            with urllib.request.urlopen(place, timeout=120) as answer, part.open("wb") as into:
                shutil.copyfileobj(answer, into)
        except (urllib.error.URLError, TimeoutError) as error:
            sys.exit(
                f"{place}: {error}. A successor may have replaced it: raise the row in "
                "packaging/bundled.toml, or set DEBIAN_MIRROR or PIP_INDEX_URL to a place that keeps old files."
            )
        part.rename(file)
    got = hashlib.sha256(file.read_bytes()).hexdigest()
    if got != wanted:
        sys.exit(
            f"{file}: SHA-256 {wanted} wanted (packaging/bundled.toml), got {got}; delete the file to fetch it again"
        )
    return file


def unpack_source(files: list[Path], into: Path) -> None:
    """The source of `files`: an archive, then perhaps Debian's patches, which are applied."""
    into.mkdir(parents=True)
    subprocess.run(["tar", "-xf", files[0], "-C", into, "--strip-components=1", "--no-same-owner"], check=True)
    for debian in files[1:]:
        subprocess.run(["tar", "-xf", debian, "-C", into, "--no-same-owner"], check=True)
        series = into / "debian/patches/series"
        lines = series.read_text().splitlines() if series.exists() else []
        for name in (line.split()[0] for line in lines if line.strip() and not line.startswith("#")):
            patch = into / "debian/patches" / name
            subprocess.run(["patch", "-p1", "--quiet", "--forward", "-d", into, "-i", patch], check=True)


def main() -> None:
    root = Path(sys.argv[1]).resolve()
    download = root / "download"
    download.mkdir(parents=True, exist_ok=True)
    for row in table():
        files = [fetch(source, wanted, download) for source, wanted in row.get("files", {}).items()]
        stamp = root / "unpacked" / row["name"]
        key = " ".join(row.get("files", {}).values())
        if not files or (stamp.exists() and stamp.read_text() == key):
            continue
        if files[0].suffix == ".deb":
            for file in files:
                subprocess.run(["dpkg-deb", "-x", file, root / "headers"], check=True)
        elif files[0].suffix == ".whl":
            shutil.rmtree(root / "zig", ignore_errors=True)
            shutil.unpack_archive(files[0], root / "zig", "zip")
            (root / "zig/ziglang/zig").chmod(0o755)
        else:
            shutil.rmtree(root / "source" / row["name"], ignore_errors=True)
            unpack_source(files, root / "source" / row["name"])
        stamp.parent.mkdir(exist_ok=True)
        stamp.write_text(key)


if __name__ == "__main__":
    main()
