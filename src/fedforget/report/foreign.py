"""Foreign SVGs: pictures somebody else drew, made fit to stand in a page.

Only elements and attributes that draw are let through; nothing that runs, loads or styles what is around it. Ids get
a prefix, so that two pictures on one page do not meet.
"""

import re
from xml.etree import ElementTree

from .html import NOTHING, Html, joined, tag, text

_DRAWS = """
svg g defs path rect circle ellipse line polyline polygon text tspan title desc use clipPath linearGradient
radialGradient stop symbol marker pattern mask
"""
_SAYS = """
id d x y x1 y1 x2 y2 cx cy r rx ry dx dy width height points viewBox preserveAspectRatio transform style
fill fill-opacity fill-rule stroke stroke-width stroke-opacity stroke-dasharray stroke-dashoffset stroke-linecap
stroke-linejoin stroke-miterlimit opacity font-size font-family font-weight font-style text-anchor
dominant-baseline href clip-path clip-rule clipPathUnits gradientUnits gradientTransform offset stop-color
stop-opacity markerWidth markerHeight refX refY orient marker-start marker-mid marker-end patternUnits
patternTransform maskUnits mask
"""
DRAWS, SAYS = frozenset(_DRAWS.split()), frozenset(_SAYS.split())
_LOCAL = re.compile(r"url\(\s*['\"]?#([^)'\"\s]+)['\"]?\s*\)")


def picture(svg: str, name: str, words: str) -> Html:
    """The drawing of an SVG file under ids beginning with `name`; nothing where there is none that can be read."""
    if re.search(r"<!ENTITY", svg, re.IGNORECASE):
        return NOTHING
    try:
        root = ElementTree.fromstring(svg)
    except ElementTree.ParseError:
        return NOTHING
    if _local(root.tag) != "svg":
        return NOTHING
    inside = joined([tag("title", text(words)), *(_element(child, name) for child in root)])
    return tag("svg", inside, **{**_attributes(root, name), "role": "img"})


def _element(element: ElementTree.Element, name: str) -> Html:
    kind = _local(element.tag)
    if kind not in DRAWS:
        return NOTHING
    parts: list[Html] = [text(element.text)] if element.text and element.text.strip() else []
    for child in element:
        parts.append(_element(child, name))
        if child.tail and child.tail.strip():
            parts.append(text(child.tail))
    return tag(kind, *parts, **_attributes(element, name))


def _attributes(element: ElementTree.Element, name: str) -> dict[str, str]:
    """Those that draw, with every id and every reference to one renamed alike."""
    found: dict[str, str] = {}
    for key, value in element.attrib.items():
        local = _local(key)
        if local not in SAYS:
            continue
        if local == "id":
            value = f"{name}-{value}"
        elif local == "href":
            if not value.startswith("#"):
                continue
            value = f"#{name}-{value[1:]}"
        else:
            value = _LOCAL.sub(rf"url(#{name}-\1)", value)
            if _reaches_out(value, name):
                continue
        found[local] = value
    return found


def _reaches_out(value: str, name: str) -> bool:
    """Whether a style or a paint would load something: an address, an import, an escape that may hide one."""
    rest = value.replace(f"url(#{name}-", "").lower()
    return any(word in rest for word in ("url(", "import", "expression", "javascript", "@", "\\", "//"))


def _local(name: object) -> str:
    return str(name).rpartition("}")[2]
