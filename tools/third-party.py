"""Prints the licences of all that is linked into kendall: python3 tools/third-party.py x86_64-unknown-linux-musl

Texts come from the sources of each crate, equal ones once. A crate that brings no text gets that of kendall for its licence, which it
shares. `crates/structure/tests/it/licences.rs` checks which licences are allowed.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

TEXT = re.compile(r"(licen[cs]e|copying|copyright|notice|unlicense)([-_.].*)?", re.IGNORECASE)
CODE = {".rs", ".py", ".c", ".h", ".html", ".js", ".toml"}
OURS = {"MIT": "LICENSE-MIT", "Apache-2.0": "LICENSE-APACHE"}


def linked(target):
    """The crates that kendall depends on in a program of this target, without what only builds or tests it."""
    words = ["cargo", "metadata", "--format-version=1", "--locked", f"--filter-platform={target}"]
    metadata = json.loads(subprocess.check_output(words))
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    waiting = [each for each, package in packages.items() if package["name"] == "kendall"]
    found = set()
    while waiting:
        each = waiting.pop()
        if each not in found:
            found.add(each)
            used = (one for one in nodes[each]["deps"] if any(kind["kind"] is None for kind in one["dep_kinds"]))
            waiting.extend(one["pkg"] for one in used)
    # In order, so that of texts that differ in spaces alone always the same one is printed.
    return [packages[each] for each in sorted(found) if packages[each]["source"]]


def texts(folder):
    """The licence files below a folder."""
    paths = (path for path in sorted(folder.rglob("*")) if TEXT.fullmatch(path.name) and path.suffix not in CODE)
    return [path.read_text(errors="replace") for path in paths if path.is_file()]


def rust():
    """The standard library of Rust, with what it links, among it the C library of a static program."""
    documents = Path(subprocess.check_output(["rustc", "--print=sysroot"], text=True).strip()) / "share/doc/rust"
    html = (documents / "COPYRIGHT-library.html").read_text()
    plain = re.sub(r"<[^>]*>", "", html).replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", '"').replace("&amp;", "&")
    return re.sub(r"\n\s*\n+", "\n\n", plain).strip()


def main():
    by_text = {}
    for package in linked(sys.argv[1]):
        name = f"{package['name']} {package['version']}"
        found = texts(Path(package["manifest_path"]).parent)
        if not found:
            offered = re.findall(r"[\w.-]+", package["license"])
            shared = [OURS[each] for each in offered if each in OURS]
            if not shared:
                sys.exit(f"kendall: {name} brings no text of its licence, {package['license']}")
            authors = ", ".join(package["authors"]) or "its authors"
            found = [f"Copyright: {authors}\n\n" + Path(shared[0]).read_text()]
        for text in found:
            names = by_text.setdefault(" ".join(text.split()), (text.strip(), set()))[1]
            names.add(f"{name} ({package['license']})")
    print("# What kendall is made with\n\nkendall contains the following software, under these licences.")
    for text, names in sorted(by_text.values(), key=lambda each: sorted(each[1])):
        print(f"\n{'=' * 78}\n" + "\n".join(sorted(names)) + f"\n{'-' * 78}\n\n{text}")
    print(f"\n{'=' * 78}\nThe standard library of Rust\n{'-' * 78}\n\n{rust()}")


if __name__ == "__main__":
    main()
