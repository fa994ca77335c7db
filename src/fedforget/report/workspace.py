"""The page of a workspace: what it is, what was forgotten and what that promises, told to who was not there."""

from collections.abc import Mapping

from .. import __version__
from ..forgetting.guarantee import MEANINGS, NAMES, ORDER
from ..workspace.facts import CellFacts, Facts, RequestFacts
from .drawing import LOOKS, bars, lineage, looks_of, span, swatch
from .html import NOTHING, Html, described, figure, joined, listed, page, paragraph, section, table, tag, text

COUNTS = ("clients", "rounds", "generation", "client-epochs", "seconds")


def workspace_page(facts: Facts) -> str:
    """One page, the same bytes for the same workspace."""
    parts = [
        ("glance", "At a glance", _glance(facts)),
        ("classes", "What is promised", _classes(facts)),
        ("lineage", "Lineage", _lineage(facts)),
        ("requests", "Requests to be forgotten", _requests(facts)),
        ("storage", "Storage", _storage(facts)),
        ("evaluation", "Evaluation", _evaluation(facts)),
        ("verification", "Verification", _verification(facts)),
        ("again", "See for yourself", _again(facts)),
    ]
    links = tag("nav", tag("ul", *(tag("li", tag("a", text(t), href=f"#{n}")) for n, t, _ in parts)), aria_label="page")
    sections = [section(name, title, inside) for name, title, inside in parts]
    return page(f"FedForget: {facts.name}", _state(facts), links, *sections)


def _state(facts: Facts) -> Html:
    said = (
        f"Federation {facts.status.federation} as of {facts.as_of}, after {facts.events} events of its ledger. "
        f"Written by FedForget {__version__}."
    )
    return paragraph(text(said), class_="soft")


def _glance(facts: Facts) -> Html:
    s = facts.status
    each = "everybody" if not facts.participants else f"{facts.participants}"
    pairs = [
        ("task", f"{s.task} ({facts.partition}), learner {s.learner}"),
        ("clients", f"{s.clients} taking part, {len(s.forgotten)} forgotten"),
        ("shards", f"{len(s.shards)}, isolated; {each} of a shard take part in a round"),
        ("stage", f"{s.stage} ({s.handover}), {facts.cells[-1].of} rounds of {facts.epochs} local epochs"),
        ("requests", f"{s.requests} carried out, {'one unfinished' if s.unfinished else 'none unfinished'}"),
        ("history", f"{s.history}, layout {s.layout}, {s.holders} holders, key epoch {s.epoch}"),
        ("stored", f"{size(s.total_bytes)} in all, {size(s.server_bytes)} of it at the server"),
        ("seed", str(facts.seed)),
    ]
    if s.debts:
        pairs.append(("owed", f"{s.debts} deletions by holders that are away"))
    return described((name, text(value)) for name, value in pairs)


def _classes(facts: Facts) -> Html:
    holds: dict[str, list[str]] = {}
    for shard, grade in facts.standing.items():
        holds.setdefault(grade, []).append(f"shard {shard}")
    for request in facts.requests:
        if request.grade:
            holds.setdefault(request.grade, []).append(f"request {request.id}")
    rows = [
        (_grade(g), text(NAMES[g]), text(MEANINGS[g]), text(", ".join(holds.get(g, [])) or "–")) for g in ORDER
    ]  # from strongest to weakest
    words = (
        "Every result carries the class of what was done. No measurement upgrades one. A shard's class says how the "
        "rounds of its lineage were made, a request's what its outcome earned."
    )
    return joined(
        [paragraph(text(words)), table("Guarantee classes", ("class", "name", "what it promises", "here"), rows)]
    )


def _grade(grade: str) -> Html:
    return tag("strong", text(grade))


def _lineage(facts: Facts) -> Html:
    looks = {kind for cell in facts.cells for kind in looks_of(cell)}
    if any(c.rounds < c.of for c in facts.cells):
        looks.add("empty")
    legend = tag("ul", *(tag("li", swatch(k), text(w)) for k, w in LOOKS.items() if k in looks), class_="legend")
    drawn = figure(
        "Which model came from which: a bar a shard and stage, its rounds from left to right.", lineage(facts)
    )
    head = ("stage and shard", "clients", "rounds", "comes from", "made as", "client-epochs", "seconds", "model")
    rows = [_cell(cell) for cell in facts.cells]
    return joined([drawn, legend, table("Each shard of each stage", head, rows, COUNTS)])


def _cell(cell: CellFacts) -> tuple[Html, ...]:
    before = ", ".join(f"stage {t} shard {s}" for t, s in cell.comes_from)
    made = "; ".join(
        f"{span(s)} {s.kind}, generation {s.generation}"
        + (f", lengths of shard {s.source}" if s.source is not None else "")
        for s in cell.stretches
    )
    rounds = f"{cell.rounds} of {cell.of}" if cell.clients or cell.rounds else "ended"
    return (
        text(f"stage {cell.stage} shard {cell.shard}"),
        text(cell.clients),
        text(rounds),
        text(f"{before} ({cell.handover})" if before else "a new model"),
        text(made or "–"),
        text(cell.client_epochs),
        text(f"{cell.seconds:.1f}"),
        tag("code", text(cell.digest[:16] or "–")),
    )


def _requests(facts: Facts) -> Html:
    if not facts.requests:
        return paragraph(text("Nobody has asked to be forgotten."))
    head = ("request", "state", "clients", "method", "class", "made again", "because")
    return table("Requests, as the ledger has them", head, [_request(r) for r in facts.requests])


def _request(request: RequestFacts) -> tuple[Html, ...]:
    because = [request.reason or request.why, *(f"but {c}" for c in request.conditions)]
    return (
        text(request.id),
        text(request.state),
        joined((tag("span", text(c), class_="keep") for c in request.clients), ", "),
        text(request.method),
        _grade(request.grade or "–"),
        listed(text(_reach(t)) for t in request.touches) if request.touches else text("nothing"),
        text("; ".join(b for b in because if b) or "–"),
    )


def _reach(touch: Mapping[str, object]) -> str:
    return (
        f"stage {touch.get('stage')} shard {touch.get('shard')}: {touch.get('rounds')} rounds "
        f"from round {touch.get('from_round')}"
    )


def _storage(facts: Facts) -> Html:
    s = facts.status
    rows = [
        ("server", s.server_bytes, "what the server keeps: newest models, and the history where it is not coded"),
        ("a holder", s.holder_bytes, "what the fullest of the holders keeps"),
        ("in all", s.total_bytes, "everywhere together"),
    ]
    drawn = figure("Bytes kept.", bars("Bytes kept", [(name, float(count), size(count)) for name, count, _ in rows]))
    cells = [(text(n), text(f"{count:,}"), text(size(count)), text(what)) for n, count, what in rows]
    codes = f"Code {', '.join(s.codes) or 'none yet'} over {s.holders} holders."
    kept = table("Storage", ("where", "bytes", "about", "what"), cells, ("bytes", "about"))
    return joined([drawn, kept, paragraph(text(codes), class_="soft")])


def _evaluation(facts: Facts) -> Html:
    found = facts.evaluation
    if found is None:
        why = f"could not be made: {facts.missing}" if facts.missing else "was left out."
        return paragraph(text(f"The evaluation {why}"))
    head = ("model", "test accuracy", "test loss", "on those who stay", "on the forgotten")
    rows = [
        (
            text(s.model),
            text(share(s.test_accuracy)),
            text(f"{s.test_loss:.3f}"),
            text(share(s.retained_accuracy)),
            text(share(s.forgotten_accuracy)),
        )
        for s in found.scores
    ]
    drawn = bars("Test accuracy", [(s.model, s.test_accuracy, share(s.test_accuracy)) for s in found.scores], 1.0)
    note = (
        "A good model predicts the forgotten clients' data too, as it predicts what it never saw: accuracy on it says "
        "nothing about forgetting."
    )
    return joined(
        [
            figure(f"Accuracy on {found.test_examples} test examples.", drawn),
            table("Shard models and their combinations", head, rows, head[1:]),
            paragraph(text(note), class_="soft"),
        ]
    )


def _verification(facts: Facts) -> Html:
    found = facts.verification
    if found is None:
        return paragraph(text("The verification was left out."))
    said = "Everything that was checked is as it should be." if found.passed else "Something is not as it should be."
    rows = [
        (
            text(c.what),
            tag("span", text("ok" if c.passed else "failed"), class_="good" if c.passed else "bad"),
            text(c.detail),
        )
        for c in found.checks
    ]
    more = listed(text(f) for f in found.findings) if found.findings else NOTHING
    return joined([paragraph(text(said)), table("Checks", ("check", "outcome", "detail"), rows), more])


def _again(facts: Facts) -> Html:
    commands = (
        f"fedforget verify {facts.name} --never-joined\nfedforget audit {facts.name}\nfedforget evaluate {facts.name}"
    )
    words = (
        "What this page says can be asked of the workspace again; the first trains the world nobody forgotten joined."
    )
    return joined([paragraph(text(words)), tag("pre", tag("code", text(commands)))])


def share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"


def size(count: float) -> str:
    """Bytes for people."""
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            break
        count /= 1000
    return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
