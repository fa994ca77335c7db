"""The rooms of the design (§5), and a reading of every module's imports to see that nobody walks through a wall.

Surface → workspace → rim (engines, storage, learners, datasets; never one another) → core.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import fedforget


@dataclass(frozen=True)
class Room:
    """Which modules are in it, whose rooms they may use, and which packages beside the standard library."""

    modules: str
    uses: str = ""
    packages: str = ""


ROOMS = {
    # core: no files, no clock, no global randomness
    "errors": Room("errors"),
    "seeds": Room("seeds", packages="numpy"),
    "core": Room("examples params plan federation forgetting", "errors seeds", "numpy"),
    # what is kept of the rounds, and how: types, code, seal
    "records": Room("manifest slices", "errors core"),
    "coding": Room("coding", "errors", "numpy numba llvmlite"),
    "sealing": Room("sealing", "errors records", "cryptography"),
    "signing": Room("canonical signing", "errors", "cryptography"),
    "requests": Room("requests", "errors signing"),
    "evidence": Room("evidence", "errors signing", "cryptography"),
    "history": Room("history", "errors seeds core records coding sealing", "numpy"),
    "evaluation": Room("evaluation", "errors seeds core", "numpy sklearn scipy threadpoolctl"),
    # rim: never one another
    "learners": Room("learners", "errors seeds core", "numpy threadpoolctl"),
    "learners in torch": Room("learners.torch", "errors seeds core", "numpy threadpoolctl torch"),
    "datasets": Room("datasets", "errors seeds core", "numpy sklearn pooch tqdm"),
    "storage": Room("storage", "errors seeds core records requests signing evidence", "sqlalchemy sqlite3 alembic"),
    "engines": Room("engines", "errors seeds core", "numpy threadpoolctl"),
    "engine on Flower": Room("engines.flower", "errors seeds core records", "numpy threadpoolctl flwr"),
    "plots": Room("plots", "errors core evaluation", "numpy matplotlib"),
    # workspace: may use all below
    "workspace": Room(
        "workspace tasks reports",
        "package errors seeds core records coding sealing signing requests evidence history evaluation"
        " learners datasets storage engines plots|learners in torch|engine on Flower",
        "numpy threadpoolctl",
    ),
    # surface: the same verbs as the workspace, no logic of its own
    "demo": Room("demo", "errors core records evaluation workspace", "numpy"),
    "serve": Room("serve", "errors workspace", "numpy"),
    "report": Room("report", "package errors core workspace"),
    "surface": Room("cli present __main__", "package errors core requests workspace demo serve report", "typer rich"),
    "package": Room("", "workspace"),
}
# Datasets know examples, seeds and errors, and nothing of federations.
DATASETS_KNOW = {"errors", "examples", "seeds"}
COUNTED_STDLIB = {"sqlite3"}
# No files, no clock, no randomness but the keyed one, nothing to wait for.
NEVER_IN_CORE = {"time", "datetime", "random", "secrets", "os", "pathlib", "io", "tempfile", "threading", "socket"}

SOURCE = Path(fedforget.__file__).parent


def split(names: str) -> set[str]:
    """Words; after a bar, names of several words."""
    words, *rest = names.split("|")
    return {*words.split(), *rest}


def room_of(module: str) -> str:
    """The room with the longest name that fits; `engines.flower_app` is in the room `engines.flower`."""
    fits = {
        len(prefix): name
        for name, room in ROOMS.items()
        for prefix in (room.modules.split() or [""])
        if module == prefix
        or module.startswith(f"{prefix}.")
        or (prefix in ("engines.flower", "plots") and module.startswith(prefix))
    }
    return fits[max(fits)] if fits else f"no room for {module}"


def name_of(path: Path) -> str:
    """`forgetting.clean`; the package itself is the empty name."""
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix("__init__").rstrip(".")


MODULES = {name_of(path): path for path in sorted(SOURCE.rglob("*.py"))}


def imports(module: str) -> Iterator[str]:
    """Everything the module imports, at the top or inside a function, by full name."""
    path = MODULES[module]
    package = ["fedforget", *path.relative_to(SOURCE).parent.parts]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{origin}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            (name, *_) = node.args
            if isinstance(name, ast.Constant):
                yield f"fedforget{name.value}" if name.value.startswith(".") else name.value


def ours(imported: str) -> str | None:
    """The module of FedForget it is, or is in."""
    head, _, rest = imported.partition(".")
    if head != "fedforget":
        return None
    while rest and rest not in MODULES:
        rest = rest.rpartition(".")[0]
    return rest


@pytest.mark.parametrize("module", MODULES)
def test_every_module_is_in_a_room_and_imports_from_where_it_may(module: str) -> None:
    name = room_of(module)
    room = ROOMS[name]
    for imported in imports(module):
        other = ours(imported)
        if other is None:
            package = imported.partition(".")[0]
            if package not in sys.stdlib_module_names or package in COUNTED_STDLIB:
                assert package in split(room.packages), f"{module} imports {imported}"
        elif other != module:
            assert room_of(other) in split(room.uses) | {name}, f"{module} imports {imported}"


@pytest.mark.parametrize("module", [m for m in MODULES if room_of(m) == "datasets"])
def test_datasets_know_nothing_of_federations(module: str) -> None:
    known = {other for imported in imports(module) if (other := ours(imported)) and room_of(other) != "datasets"}
    assert known <= DATASETS_KNOW


@pytest.mark.parametrize("module", [m for m in MODULES if room_of(m) in ("errors", "seeds", "core", "records")])
def test_the_core_has_no_effects(module: str) -> None:
    assert not NEVER_IN_CORE & {imported.partition(".")[0] for imported in imports(module)}


@pytest.mark.parametrize("module", [m for m in MODULES if room_of(m) == "requests"])
def test_requests_count_days_but_have_no_clock(module: str) -> None:
    assert not (NEVER_IN_CORE - {"datetime"}) & {imported.partition(".")[0] for imported in imports(module)}
    calls = [n.func for n in ast.walk(ast.parse(MODULES[module].read_text())) if isinstance(n, ast.Call)]
    assert not {"now", "utcnow", "today"} & {f.attr for f in calls if isinstance(f, ast.Attribute)}


@pytest.mark.parametrize(
    ("package", "rooms"),
    [
        ("torch", {"learners in torch"}),
        ("flwr", {"engine on Flower"}),
        ("sqlalchemy", {"storage"}),
        ("sqlite3", {"storage"}),
        ("matplotlib", {"plots"}),
    ],
)
def test_the_heavy_packages_are_imported_in_their_own_room_only(package: str, rooms: set[str]) -> None:
    assert {name for name, room in ROOMS.items() if package in split(room.packages)} == rooms
    found = {room_of(m) for m in MODULES for imported in imports(m) if imported.partition(".")[0] == package}
    assert found <= rooms


def test_nothing_imports_the_command_line() -> None:
    others = [m for m in MODULES if m.partition(".")[0] not in ("cli", "__main__")]
    assert not [m for m in others for imported in imports(m) if (ours(imported) or "").partition(".")[0] == "cli"]


def test_the_table_names_only_rooms_there_are() -> None:
    assert {used for room in ROOMS.values() for used in split(room.uses)} <= set(ROOMS)
    rim = ["learners", "learners in torch", "datasets", "storage", "engines", "engine on Flower"]
    assert not [name for name in rim if split(ROOMS[name].uses) & set(rim)]


HEAVY = {"torch", "sklearn", "sqlalchemy", "matplotlib", "flwr", "cryptography", "typer", "rich", "scipy"}


@pytest.mark.parametrize("module", ["fedforget", "fedforget.forgetting", "fedforget.learners.mlp"])
def test_the_package_and_its_core_load_nothing_heavy(module: str) -> None:
    code = f"import sys, {module}; print(*sorted({{m.partition('.')[0] for m in sys.modules}}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not HEAVY & set(loaded)
