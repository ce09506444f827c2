"""Texts of which something is wrong, for what reads them."""

import re


def damaged(text, random, numbers):
    """One or two damages: a cut, another character, one of `numbers` in place of a number, a part twice or not at all."""
    for _ in range(random.choice([1, 2])):
        at, found = random.randrange(len(text) or 1), list(re.finditer(r"-?\d+", text))
        way = random.randrange(5)
        if way == 0:
            text = text[:at]
        elif way == 1:
            text = text[:at] + chr(random.randrange(1, 300)) + text[at + 1 :]
        elif way == 2 and found:
            one = random.choice(found)
            text = text[: one.start()] + random.choice(numbers) + text[one.end() :]
        elif way == 3:
            text = text[: at + random.randrange(80)] + text[at:]
        else:
            text = text[:at] + text[at + random.randrange(80) :]
    return text
