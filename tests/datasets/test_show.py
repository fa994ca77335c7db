"""The plot of a data set and a partition: plain text, and JSON beside it."""

import json
from pathlib import Path

import numpy as np

from fedforget.datasets import Dataset, load
from fedforget.datasets.partition import partition
from fedforget.datasets.show import plot, summary
from fedforget.examples import Examples


def text() -> Dataset:
    examples = Examples(np.zeros((400, 4), np.uint8), np.zeros((400, 4), np.int64))
    return Dataset("text", "text", examples, examples.take(slice(9)), tuple("ab"))


def test_a_data_set_alone() -> None:
    digits = load("digits")
    about = summary(digits)
    assert json.loads(json.dumps(about)) == about
    assert sum(about["train_by_class"]) == about["train"] == 1437
    lines = plot(about).splitlines()
    assert lines[0] == "digits: 1,437 to train, 360 to test, 10 classes, inputs 64"
    assert len(lines) == 11
    assert lines[4].startswith("  3 147 █")  # the largest class: its bar is as long as there is room
    assert max(map(len, lines[1:])) == len(lines[4]) <= 80


def test_pictures_by_client() -> None:
    digits = load("digits")
    parts = partition(digits, "by-class", 40, 5)
    about = summary(digits, parts, partition="by-class", seed=5)
    assert json.loads(json.dumps(about)) == about
    assert [client["client"] for client in about["clients"]] == list(parts)
    for client, rows in zip(about["clients"], parts.values(), strict=True):
        assert sum(client["by_class"]) == client["examples"] == len(rows)
    lines = plot(about, width=60, most=3).splitlines()
    assert lines[12] == "by-class to 40 clients, seed 5: 35 to 36 each, 0 left over"
    assert lines[13].startswith("  client-000 3")
    assert lines[13].split("|")[1].count("▇") == 1
    assert lines[16] == "  … and 37 more"
    assert all(len(line) <= 60 for line in lines[13:16])


def test_text_by_client() -> None:
    dataset = text()
    about = summary(dataset, partition(dataset, "buckets", 5, 0), partition="buckets", seed=0)
    assert {client["pieces"] for client in about["clients"]} <= {1, 2}
    assert json.loads(json.dumps(about)) == about
    lines = plot(about).splitlines()
    assert lines[0] == "text: 400 to train, 9 to test, 2 characters, inputs 4"
    assert len(lines) == 3 + 5
    assert "|" not in plot(about)


def test_equal_sizes_and_no_name() -> None:
    dataset = text()
    assert "dealt to 4 clients: 100 each, 0 left over" in plot(summary(dataset, partition(dataset, "iid", 4, 0)))


def test_one_example_of_a_class_is_seen() -> None:
    labels = np.array([0] * 999 + [1])
    examples = Examples(np.zeros((1000, 1), np.float32), labels)
    dataset = Dataset("two", "image", examples, examples, ("a", "b"))
    shown = plot(summary(dataset, {"client-000": np.arange(1000)}))
    assert "|█▁|" in shown
    assert plot(summary(dataset), width=1).splitlines()[2] == "  b   1 █"


def test_the_example_in_the_docs_is_what_is_printed() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "datasets.md").read_text(encoding="utf-8")
    digits = load("digits")
    about = summary(digits, partition(digits, "by-class", 100, 0), partition="by-class", seed=0)
    assert plot(about, width=60, most=5) in page
