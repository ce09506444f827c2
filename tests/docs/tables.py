"""Tables of docs/numbers."""

import re
import sys


def rows_of(page: str, header: str) -> list[list[str]]:
    """Of the table whose header line begins so."""
    tables = re.findall(rf"^\| {re.escape(header)}.*\n\|[-:| ]+\|\n((?:\|.*\n)+)", page, re.M)
    if len(tables) != 1:
        sys.exit(f"docs/numbers has {len(tables)} tables that begin with '{header}', and not one")
    return [[cell.strip().strip("`") for cell in line.strip("|\n").split("|")] for line in tables[0].splitlines()]
