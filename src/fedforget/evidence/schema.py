"""Schema: whether a value fits a JSON Schema, for the part of JSON Schema that the certificate's uses."""

import re
from collections.abc import Mapping
from typing import Any


def unfit(value: Any, schema: Mapping[str, Any], where: str = "statement") -> str:
    """What does not fit; empty where all does."""
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    kind = _kind(value)
    if kind not in kinds:
        return f"{where} is {kind}, not {' or '.join(kinds)}"
    if kind == "object":
        return _unfit_object(value, schema, where)
    if kind == "array":
        found = (unfit(item, schema["items"], f"{where}[{at}]") for at, item in enumerate(value))
        return next((wrong for wrong in found if wrong), "")
    if kind == "string" and not re.fullmatch(schema["pattern"], value):
        return f"{where} does not match {schema['pattern']}"
    if kind == "integer" and not schema["minimum"] <= value <= schema["maximum"]:
        return f"{where} is out of range"
    return ""


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    names = {dict: "object", list: "array", str: "string", int: "integer", type(None): "null"}
    return names.get(type(value), type(value).__name__)


def _unfit_object(value: Mapping[str, Any], schema: Mapping[str, Any], where: str) -> str:
    """Exactly the properties there are: all are required, none may be added."""
    if set(value) != set(schema["properties"]):
        odd = set(value) ^ set(schema["properties"])
        return f"{where} lacks or adds {', '.join(sorted(map(str, odd)))}"
    found = (unfit(value[name], inner, f"{where}.{name}") for name, inner in schema["properties"].items())
    return next((wrong for wrong in found if wrong), "")
