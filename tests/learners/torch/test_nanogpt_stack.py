"""Stacked clients never meet: bit for bit each is what it would have been alone."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import TEXT, windows

from fedforget.errors import SettingError
from fedforget.examples import Examples
from fedforget.learners.torch import SGD, Job, NanoGPT
from fedforget.learners.torch.attention import attend, attend_plainly


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(1, 23), st.integers(1, 3)), min_size=2, max_size=7),
    st.integers(1, 7),
    st.integers(1, 7),
    st.randoms(use_true_random=False),
)
def test_a_clients_bits_do_not_depend_on_its_stack(sizes, stack, batch, chance) -> None:  # type: ignore[no-untyped-def]
    model = replace(TEXT, stacked=stack, sgd=SGD(lr=0.1, batch=batch))
    jobs = [Job(model.init(i % 2), windows(f"c{i}", n), e, i) for i, (n, e) in enumerate(sizes)]
    alone = [model.fit(j.params, j.examples, epochs=j.epochs, seed=j.seed).digest for j in jobs]
    order = chance.sample(range(len(jobs)), chance.randint(1, len(jobs)))
    assert [r.digest for r in model.fit_stack([jobs[i] for i in order])] == [alone[i] for i in order]


@pytest.mark.parametrize(("context", "batch", "letters"), [(64, 10, 65), (33, 5, 65), (128, 3, 65), (17, 64, 50)])
def test_nor_at_the_papers_size(context: int, batch: int, letters: int) -> None:
    model = NanoGPT(letters, context, sgd=SGD(batch=batch), stacked=5)
    rng = np.random.default_rng(0)
    texts = [rng.integers(0, letters, (n, context + 1), dtype=np.uint8) for n in (13, 7, 21, 1, 10)]
    jobs = [Job(model.init(i), Examples(t[:, :-1], t[:, 1:]), 1, i) for i, t in enumerate(texts)]
    alone = [model.fit_stack([job])[0].digest for job in jobs]
    assert [r.digest for r in model.fit_stack(jobs)] == alone
    assert [r.digest for r in model.fit_stack(jobs[::-1])] == alone[::-1]


def test_windows_of_different_lengths_share_no_stack_but_a_result() -> None:
    jobs = [
        Job(TEXT.init(0), Examples(full.x[:, :t], full.y[:, :t]), 1, t)
        for t, full in ((3, windows("a", 9)), (6, windows("b", 9)))
    ]
    alone = [TEXT.fit_stack([job])[0] for job in jobs]
    assert TEXT.fit_stack(jobs) == alone


def test_solvers_mix_in_a_stack() -> None:
    jobs = [
        Job(TEXT.init(0), windows("a", 9), 1, i, solver)
        for i, solver in enumerate(("sgd", "fisher", "sgd", "hutchinson"))
    ]
    assert TEXT.fit_stack(jobs) == [TEXT.fit_stack([job])[0] for job in jobs]


@pytest.mark.parametrize(("heads", "width", "t"), [(4, 16, 64), (2, 8, 5), (1, 4, 3), (3, 12, 33)])
def test_attention_is_the_books(heads: int, width: int, t: int) -> None:
    torch.manual_seed(0)
    qkv = torch.randn(6, t, 3 * width, dtype=torch.float64, requires_grad=True)
    slope = torch.randn(6, t, width, dtype=torch.float64)
    ours, theirs = attend(qkv, heads), attend_plainly(qkv, heads)
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(torch.autograd.grad(ours, qkv, slope), torch.autograd.grad(theirs, qkv, slope))


def test_no_place_sees_what_comes_after() -> None:
    params, text = TEXT.init(0), windows("a", 4).x
    changed = text.copy()
    changed[:, 4:] = 0
    np.testing.assert_allclose(TEXT.predict(params, text)[:, :4], TEXT.predict(params, changed)[:, :4], rtol=1e-5)
    assert TEXT.predict(params, text[:, :2]).shape == (4, 2, TEXT.vocabulary)


def test_the_papers_size() -> None:
    assert NanoGPT(65, 64).init(0).layout.size == 65 * 16 + 64 * 16 + 4 * (2 * 16 + 12 * 16 * 16) + 16


@pytest.mark.parametrize("wrong", [{"layers": 0}, {"width": 18}, {"stacked": 0}, {"context": 0}])
def test_settings_no_text_fits_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(SettingError):
        NanoGPT(65, **wrong)  # type: ignore[arg-type]
