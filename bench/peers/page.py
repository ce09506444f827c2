"""Writes the page of tables. Its first line says which commit was measured, and when."""
import os
import textwrap

from process import Failed
from report import heading, summary, tables

TITLE = "# anyccl and other libraries: measured"
ORIGIN = "This page is written by `bench/peers/run --write`; [performance.md](../performance.md) sums it up."


def title(results):
    return f"{TITLE} on {results.about['machine']['date']} at commit {results.about.get('commit', 'unknown')}"


def wrapped(text):
    """Paragraphs in lines of at most 120 columns; tables and pictures as they are."""
    return "\n".join(line if line.startswith(("|", "!")) else
                     textwrap.fill(line, 120, break_long_words=False, break_on_hyphens=False)
                     for line in text.split("\n"))


def content(results, pictures):
    """`pictures`: paths as seen from the page."""
    lines = [title(results), "", ORIGIN, "", *(line + "\n" for line in heading(results)), *summary(results), ""]
    for picture in pictures:
        op = os.path.basename(picture).removeprefix("peers-").removesuffix(".svg")
        lines.append(f"![{op}: time and bus bandwidth against size, all libraries]({picture})")
    return wrapped("\n".join(lines + tables(results))) + "\n"


def write(page, results, pictures):
    """Replaces an earlier page of tables, and nothing else."""
    if page.exists() and not page.read_text().startswith(TITLE):
        raise Failed(f"{page} is not a page of tables: it does not begin with {TITLE!r}")
    page.write_text(content(results, pictures))
