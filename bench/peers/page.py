"""Puts tables and pictures between two markers of a page."""
import os

from process import Failed
from report import heading, summary, tables

BEGIN, END = "<!-- bench/peers: begin, written by bench/peers/run --write -->", "<!-- bench/peers: end -->"


def section(results, pictures):
    """`pictures`: paths as the page must name them."""
    lines = [line + "\n" for line in heading(results)] + summary(results) + [""]
    for picture in pictures:
        op = os.path.basename(picture).removeprefix("peers-").removesuffix(".svg")
        lines.append(f"![{op}: time and bus bandwidth against size, all libraries]({picture})")
    return "\n".join(lines + tables(results))


def write(page, results, pictures):
    text = page.read_text()
    if BEGIN not in text or END not in text:
        raise Failed(f"{page} has no line {BEGIN!r} and {END!r}")
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    page.write_text(f"{before}{BEGIN}\n{section(results, pictures)}\n{END}{after}")
