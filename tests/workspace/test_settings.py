"""federation.toml: what is written comes back, and nothing else is taken for it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedforget.errors import SettingError
from fedforget.manifest import Keeping
from fedforget.workspace import FederationSettings
from fedforget.workspace.settings import check_client_name

keepings = st.integers(1, 30).flatmap(
    lambda n: st.builds(
        Keeping,
        layout=st.sampled_from(["shard", "server"]),
        keep=st.sampled_from(["full", "lean"]),
        holders=st.just(n),
        threshold=st.integers(1, n),
        cipher=st.sampled_from(["aes-256-gcm", "chacha20-poly1305"]),
        compress=st.booleans(),
    )
)
settings = st.integers(1, 200).flatmap(
    lambda clients: st.builds(
        FederationSettings,
        task=st.sampled_from(["digits", "mnist", 'quo"ted \\ and ü \n']),
        clients=st.just(clients),
        seats=st.sampled_from([0, clients, clients + 3]),
        shards=st.integers(1, clients),
        participants=st.integers(0, 9),
        draw=st.sampled_from(["round", "stage"]),
        rounds=st.integers(1, 99),
        weighted=st.booleans(),
        partition=st.sampled_from(["iid", "by-class", "buckets"]),
        share=st.floats(0.01, 1),
        lr=st.floats(0, 10),
        seed=st.integers(-(2**62), 2**62),
        federation=st.text(max_size=16),
        keeping=keepings,
    )
)


@given(settings)
def test_settings_come_back_from_toml_as_they_were(chosen: FederationSettings) -> None:
    again = FederationSettings.from_toml(chosen.to_toml())
    assert again == chosen
    assert again.digest == chosen.digest


@given(settings, settings)
def test_settings_differ_in_digest_as_they_differ(one: FederationSettings, other: FederationSettings) -> None:
    assert (one.digest == other.digest) == (one == other)


@pytest.mark.parametrize(
    "text",
    [
        "colour = 'red'",
        "clients = '8'",
        "clients = 8.0",
        "clients = true",
        "weighted = 1",
        "task = 1",
        "lr = true",
        "[keeping]\nholder = 3",
        "[keeping]\nholders = '3'",
        "[keeping]\nthreshold = 0",
        "[keeping]\nholders = 2\nthreshold = 3",
        "[keeping]\nlayout = 'spiral'",
        "[keeping]\nkeep = 'nothing'",
        "seats = 4\nclients = 5",
        "shards = 9\nclients = 8",
        "lr = inf",
        "lr = nan",
        "momentum = nan",
        "momentum = 1.0",
        "rounds = 99999999999999999999",
        "epochs = 2147483648",
        "seed = 9223372036854775808",
    ],
)
def test_names_and_types_that_are_none_are_refused_and_named(text: str) -> None:
    with pytest.raises(SettingError) as caught:
        FederationSettings.from_toml(text)
    assert caught.value.setting in str(caught.value)


def test_a_whole_number_will_do_for_a_fraction() -> None:
    assert FederationSettings.from_toml("lr = 1").lr == 1


def test_without_seats_of_its_own_a_federation_has_as_many_as_clients() -> None:
    plain = FederationSettings(clients=7, shards=2)
    assert plain.places == 7
    assert replace(plain, seats=9).places == 9


@pytest.mark.parametrize("name", ["client-000", "site17", "a", "_x", "ward.3@hospital-b", "X" * 64])
def test_names_that_are_folders_names(name: str) -> None:
    assert check_client_name(name) == name


@pytest.mark.parametrize(
    "name", ["", "a/b", "..", ".", "-rf", ".hidden", "a\n", "a\0", "ä", "X" * 65, "server", "server1"]
)
def test_names_that_are_not(name: str) -> None:
    with pytest.raises(SettingError, match="client"):
        check_client_name(name)
