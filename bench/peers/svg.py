"""Makes matplotlib's SVG small: one path for each series and for the ticks of an axis, markers by reference, styles as
classes, one decimal, no metadata. The picture stays the same within a tenth of a point."""
import re
import xml.etree.ElementTree as ElementTree

SVG, HREF = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}href"
COMMANDS = {"M": 1, "L": 1, "C": 3, "Q": 2, "Z": 0}  # points of each
FONT = "font-family:'DejaVu Sans',Verdana,Arial,Helvetica,sans-serif"


def tenths(number):
    return round(float(number) * 10)


def decimal(number, scale=10):
    """Of tenths; in the shortest form that a path allows."""
    digits = f"{number / scale:.{len(str(scale)) - 1}f}".rstrip("0").rstrip(".")
    return re.sub(r"^(-?)0\.", r"\1.", digits)


def joined(numbers, scale=10):
    text = ""
    for number in (decimal(number, scale) for number in numbers):
        text += number if not text or number.startswith("-") else " " + number
    return text


def commands(path):
    """[(letter, [(x, y) in points of the picture])] of an absolute path."""
    found = []
    for letter, numbers in re.findall(r"([MLCQZz])([^MLCQZz]*)", path):
        values = [float(word) for word in numbers.replace(",", " ").split()]
        found.append((letter.upper(), list(zip(values[::2], values[1::2]))))
        assert len(found[-1][1]) == COMMANDS[letter.upper()], path
    return found


class Pen:
    """Writes relative commands between rounded places, so that errors do not add up."""

    def __init__(self, scale=10):
        self.scale = scale  # 100: hundredths, for small shapes
        self.text, self.at, self.begin, self.last = "", (0, 0), (0, 0), ""

    def draw(self, path, origin=(0, 0)):
        for letter, points in path:
            if letter == "Z":
                self.text, self.at, self.last = self.text + "z", self.begin, "z"
                continue
            places = [tuple(round((p + o) * self.scale) for p, o in zip(point, origin)) for point in points]
            steps = [axis for x, y in places for axis in (x - self.at[0], y - self.at[1])]
            self.write(letter.lower(), steps)
            self.at = places[-1]
            if letter == "M":
                self.begin = self.at

    def write(self, letter, steps):
        if letter == "l" and 0 in steps:
            letter, steps = ("h", steps[:1]) if steps[1] == 0 else ("v", steps[1:])
        numbers = joined(steps, self.scale)
        again = letter == self.last or (letter, self.last) == ("l", "m")
        self.text += (("" if numbers.startswith("-") else " ") if again else letter) + numbers
        self.last = letter


def declarations(text):
    return dict(part.split(":", 1) for part in (text or "").replace(": ", ":").split("; ") if part)


class Thinner:
    def __init__(self, root):
        self.root = root
        self.markers = {e.get("id"): e for e in root.iter(f"{SVG}path") if e.get("id")}
        self.clips = {e.get("id"): e.find(f"{SVG}rect") for e in root.iter(f"{SVG}clipPath")}
        self.classes, self.clip_names, self.shapes, self.lines = {}, {}, {}, []

    def name_of(self, style):
        text = ";".join(f"{key}:{value}" for key, value in style.items())
        return self.classes.setdefault(text, "abcdefghijklmnopqrstuvwxyz"[len(self.classes) % 26] +
                                       str(len(self.classes) // 26 or ""))

    def key(self, style, clip):
        """Attributes of a path: its class and clip."""
        attributes = f'class="{self.name_of(style)}"'
        if clip:
            name = self.clip_names.setdefault(clip[5:-1], f"q{len(self.clip_names)}")
            attributes += f' clip-path="url(#{name})"'
        return attributes

    def marker(self, use):
        """(commands, style) of the marker that it places."""
        marker = self.markers[use.get(HREF)[1:]]
        return commands(marker.get("d")), {**declarations(use.get("style")), **declarations(marker.get("style"))}

    def shape(self, use):
        """The name of a marker for the corners of a path."""
        path, style = self.marker(use)
        pen = Pen(scale=100)
        pen.draw(path)
        return self.shapes.setdefault(f'<path class="{self.name_of(style)}" d="{pen.text}"/>', f"m{len(self.shapes)}")

    def uses(self, group, pens):
        for use in group.findall(f"{SVG}use"):
            path, style = self.marker(use)
            pen = pens.setdefault(self.key(style, group.get("clip-path")), Pen())
            pen.draw(path, (float(use.get("x")), float(use.get("y"))))

    def series(self, group, pens):
        """Whether the group is a line with a marker at each of its corners; then it is drawn."""
        path, uses = group.find(f"{SVG}path"), group.findall(f"{SVG}g/{SVG}use")
        if path is None or not uses:
            return False
        line = commands(path.get("d"))
        corners = [points[0] for letter, points in line if letter in "ML"]
        if [(float(use.get("x")), float(use.get("y"))) for use in uses] != corners:
            return False
        style = {**declarations(path.get("style")), "marker": f"url(#{self.shape(uses[0])})"}
        pens.setdefault(self.key(style, path.get("clip-path")), Pen()).draw(line)
        return True

    def text(self, element, origin=(0.0, 0.0)):
        style = {k: v for k, v in declarations(element.get("style")).items() if k != "font-family"}
        kind = f' class="{self.name_of(style)}"' if style else ""
        turn = re.match(r"rotate\((\S+) ", element.get("transform", ""))
        place = [tenths(float(element.get(axis, 0)) + o) for axis, o in zip("xy", origin)]
        turn = f' transform="rotate({float(turn[1]):g} {joined(place)})"' if turn and float(turn[1]) else ""
        spans, last = "", None
        for span in element.findall(f"{SVG}tspan"):
            size = declarations(span.get("style"))["font-size"]
            height = tenths(float(span.get("y")) + origin[1])
            if (size, height) == last:
                spans = spans.removesuffix("</tspan>") + f"{span.text}</tspan>"
                continue
            x = tenths(float(span.get("x")) + origin[0])
            last, name = (size, height), self.name_of({"font-size": size})
            spans += f'<tspan class="{name}" x="{decimal(x)}" y="{decimal(height)}">{span.text}</tspan>'
        words = (element.text or "").strip().replace("&", "&amp;").replace("<", "&lt;")
        at = "" if spans else f' x="{decimal(place[0])}" y="{decimal(place[1])}"'
        return f"<text{kind}{at}{turn}>{spans or words}</text>"

    def walk(self, group, pens, texts, origin=(0.0, 0.0)):
        for element in group:
            if element.tag == f"{SVG}path" and element.get("id") is None:
                pen = pens.setdefault(self.key(declarations(element.get("style")), element.get("clip-path")), Pen())
                pen.draw(commands(element.get("d")))
            elif element.tag == f"{SVG}text":
                texts.append(self.text(element, origin))
            elif element.tag == f"{SVG}g":
                moved = re.match(r"translate\((\S+) (\S+)\)", element.get("transform", ""))
                if self.series(element, pens):
                    continue
                self.uses(element, pens)
                self.walk(element, pens, texts, (float(moved[1]), float(moved[2])) if moved else origin)

    def emit(self, group):
        """One path for all of a group that look alike: within a series or an axis their order does not matter."""
        parts = [part for part in group if part.tag == f"{SVG}g"]
        if group.get("id", "").startswith(("figure", "axes", "legend")):
            for part in parts:
                self.emit(part)
            return
        pens, texts = {}, []
        self.walk([group], pens, texts)
        self.lines += [f'<path {key} d="{pen.text}"/>' for key, pen in pens.items()] + texts

    def picture(self):
        self.emit(self.root.find(f"{SVG}g"))
        style = "*{stroke-linejoin:round;stroke-linecap:butt}text{" + FONT + "}"
        style += "".join(f".{name}{{{text}}}" for text, name in self.classes.items())
        clips = [f'<marker id="{name}" markerUnits="userSpaceOnUse" overflow="visible">{path}</marker>'
                 for path, name in self.shapes.items()]
        for name, short in self.clip_names.items():
            rect = self.clips[name]
            sides = " ".join(f'{side}="{decimal(tenths(rect.get(side)))}"' for side in ("x", "y", "width", "height"))
            clips.append(f'<clipPath id="{short}"><rect {sides}/></clipPath>')
        size = " ".join(f'{name}="{self.root.get(name)}"' for name in ("width", "height", "viewBox"))
        return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" {size}>', f"<style>{style}</style>",
                          f"<defs>{''.join(clips)}</defs>", *self.lines, "</svg>", ""])


def thin(text):
    """`text` itself if matplotlib has not written it."""
    root = ElementTree.fromstring(text)
    figure = root.find(f"{SVG}g")
    if figure is None or figure.get("id") != "figure_1":
        return text
    return Thinner(root).picture()


def thin_file(file):
    file.write_text(thin(file.read_text(encoding="utf-8")), encoding="utf-8")
