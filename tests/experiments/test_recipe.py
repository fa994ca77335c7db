"""The recipes that come along can be read, and say what the paper's tables and figures need."""

from pathlib import Path

import pytest

from fedforget.errors import DataError, SettingError
from fedforget.experiments import TARGETS
from fedforget.experiments.recipe import read

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("preset", ["quick", "paper", "test"])
@pytest.mark.parametrize("target", TARGETS)
def test_every_target_has_a_recipe_of_every_preset(target: str, preset: str) -> None:
    recipe = read(target, preset)
    assert recipe.title
    names = [case.name for case in recipe.cases()]
    assert len(set(names)) == len(names)


def test_every_recipe_goes_into_the_wheel() -> None:
    packed = (ROOT / "pyproject.toml").read_text()
    for path in (ROOT / "experiments").glob("*.toml"):
        assert f'"experiments/{path.name}" = "fedforget/experiments/recipes/{path.name}"' in packed
    assert {p.stem for p in (ROOT / "experiments").glob("*.toml")} == set(TARGETS)


@pytest.mark.parametrize("preset", ["quick", "paper"])
def test_table_1_has_four_data_sets_both_partitions_and_every_method(preset: str) -> None:
    cases = read("table1", preset).cases()
    for task in ("mnist", "fashion-mnist", "cifar10", "shakespeare"):
        for partition in ("iid", "non-iid"):
            mine = [c for c in cases if (c.federation.task, c.federation.partition) == (task, partition)]
            found = {
                (c.federation.sharded, c.request.method) for c in mine if c.request and c.federation.draw == "once"
            }
            assert found >= {(False, m) for m in ("FR", "FE", "RR")} | {(True, m) for m in ("SE", "exact", "clean")}


def test_the_paper_preset_is_the_papers_setting() -> None:
    for case in (*read("table1", "paper").cases(), *read("fig4", "paper").cases()):
        f = case.federation
        assert (f.clients, f.participants, f.shards, f.rounds, f.epochs) == (100, 20, 4, 30, 10)
        assert (f.examples, f.lr, f.batch, f.context) == (0, 0.0, 0, 64)
        assert case.request is None or case.request.ratio == 2


def test_the_quick_preset_has_three_seeds_and_others_may_be_asked_for() -> None:
    assert {c.federation.seed for c in read("table1", "quick").cases()} == {0, 1, 2}
    assert {c.federation.seed for c in read("table1", "quick").cases((7,))} == {7}


def test_clean_is_left_out_where_no_shard_is_left_to_borrow_from() -> None:
    asked = {c.request.name for c in read("fig4", "test").cases() if c.request}
    assert {"clean", "clean-adapt-2", "SE-even-2"} <= asked
    assert "clean-even-2" not in asked


def test_an_unknown_preset_folder_or_word_is_an_error_with_a_way_out(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="quick"):
        read("table1", "slow")
    with pytest.raises(DataError, match="--recipes"):
        read("table1", "quick", tmp_path)
    (tmp_path / "table1.toml").write_text("title = ")
    with pytest.raises(DataError):
        read("table1", "quick", tmp_path)
    (tmp_path / "table1.toml").write_text(
        'title = "t"\n[a]\nfederation = {size = 3}\n[[a.grid]]\ntasks = ["digits"]\nsharded = ["SE"]\n'
    )
    with pytest.raises(SettingError, match="size"):
        read("table1", "a", tmp_path).cases()
