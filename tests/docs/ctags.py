"""What Universal Ctags finds in C and C++ sources."""

import json
import shutil
import subprocess
import sys
from pathlib import Path


def tags(root: Path, files: list[Path], kinds: str) -> list[dict]:
    """The tags of `files`; `kinds`: letters of `ctags --list-kinds=C++`. Without Universal Ctags the program
    ends with 77, which ctest calls skipped."""
    program = shutil.which("ctags-universal")
    if program is None:
        print("universal-ctags is not installed")
        sys.exit(77)
    command = [program, "--quiet", "--options=NONE", "-L", "-", "-f", "-", "--sort=no", "--output-format=json",
               "--languages=C++", "--map-C++=+.c", f"--kinds-C++={kinds}", "--fields=+neKSZ",
               "--fields-C++=+{properties}"]
    names = "".join(f"{file.relative_to(root)}\n" for file in files)
    done = subprocess.run(command, cwd=root, input=names, capture_output=True, text=True, check=True)
    return [tag for tag in map(json.loads, done.stdout.splitlines()) if tag["_type"] == "tag"]


def full_name(tag: dict) -> str:
    """With its namespaces and types."""
    return f"{tag['scope']}::{tag['name']}" if "scope" in tag else tag["name"]
