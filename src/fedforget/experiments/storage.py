"""Storage: the table of Figure 5's numbers for each of the paper's models."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from . import fig5
from .recipe import Recipe
from .sheet import Sheet


def compute(recipe: Recipe, seed: int) -> dict[str, Any]:
    shared = {k: v for k, v in recipe.values.items() if k not in ("models", "seeds")}
    models = recipe.values["models"]
    return {m["name"]: fig5.compute(replace(recipe, values={**shared, **m}), seed) for m in models}


def sheets(result: Mapping[str, Any]) -> tuple[Sheet, ...]:
    return tuple(
        replace(sheet, name=f"{sheet.name}: {name}") for name, found in result.items() for sheet in fig5.sheets(found)
    )
