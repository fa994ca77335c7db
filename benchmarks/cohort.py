"""How fast a round of clients is trained: ours, the plain loop, Flower's simulation, pfl, and what the machine allows.

    python benchmarks/cohort.py [--repeat 3] [--peers-python PATH] [--json FILE]

Every contender does the same work in one run, turn by turn, so that a busy machine slows all alike: 20 clients of 600
examples, one epoch each, parameters handed out and taken back. Start-up (processes, imports, data) is not timed, for
a federation pays it once. Each contender lives in a process of its own that waits while others are timed. Flower and
pfl run in the interpreter `--peers-python` names, or are reported as absent with the reason.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

CLIENTS, EXAMPLES, LETTERS, WINDOW = 20, 600, 65, 64
HERE = Path(__file__).resolve()


@dataclass(frozen=True)
class Work:
    name: str
    model: str
    batch: int
    image: tuple[int, int, int] = (28, 28, 1)


WORKS = (
    Work("MNIST CNN, batch 64", "cnn", 64),
    Work("MNIST CNN, batch 10", "cnn", 10),
    Work("CIFAR-10 CNN, batch 64", "cnn", 64, (32, 32, 3)),
    Work("nanoGPT T=64, batch 10", "nanogpt", 10),
)
CONTENDERS = ("ours fp32", "ours bf16", "plain loop", "plain loop, 1 thread", "flower", "pfl")


def examples(work: Work) -> list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    """Random ones: the arithmetic does not look at them."""
    rng = np.random.default_rng(0)
    if work.model == "nanogpt":
        text = rng.integers(0, LETTERS, (CLIENTS, EXAMPLES, WINDOW + 1), dtype=np.uint8)
        return [(t[:, :-1], t[:, 1:]) for t in text]
    x = rng.integers(0, 256, (CLIENTS, EXAMPLES, *work.image), dtype=np.uint8)
    return list(zip(x, rng.integers(0, 10, (CLIENTS, EXAMPLES)), strict=True))


# --- the plain loop: what one writes first ----------------------------------------------------------------


def plain_module(work: Work) -> Any:
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.ln_1, self.ln_2 = nn.LayerNorm(16, bias=False), nn.LayerNorm(16, bias=False)
            self.qkv, self.out = nn.Linear(16, 48, bias=False), nn.Linear(16, 16, bias=False)
            self.up, self.down = nn.Linear(16, 64, bias=False), nn.Linear(64, 16, bias=False)

        def forward(self, h: Any) -> Any:
            n, t, d = h.shape
            q, k, v = (part.view(n, t, 4, 4).transpose(1, 2) for part in self.qkv(self.ln_1(h)).split(16, dim=2))
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            h = h + self.out(mixed.transpose(1, 2).reshape(n, t, d))
            return h + self.down(F.gelu(self.up(self.ln_2(h))))

    class GPT(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.wte, self.wpe = nn.Embedding(LETTERS, 16), nn.Embedding(WINDOW, 16)
            self.blocks = nn.Sequential(*(Block() for _ in range(4)))
            self.ln_f, self.head = nn.LayerNorm(16, bias=False), nn.Linear(16, LETTERS, bias=False)
            self.head.weight = self.wte.weight

        def forward(self, x: Any) -> Any:
            return self.head(self.ln_f(self.blocks(self.wte(x) + self.wpe(torch.arange(x.shape[1])))))

    if work.model == "nanogpt":
        return GPT()
    high, wide, channels = work.image
    return nn.Sequential(
        nn.Conv2d(channels, 32, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * (high // 4) * (wide // 4), 256),
        nn.ReLU(),
        nn.Linear(256, 10),
    )


def plain_data(work: Work) -> list[tuple[Any, Any]]:
    import torch

    def ready(x: np.ndarray[Any, Any]) -> Any:
        if work.model == "nanogpt":
            return torch.tensor(x.astype(np.int64))
        return torch.tensor(x).permute(0, 3, 1, 2).contiguous().float().div_(255).sub_(0.1307).div_(0.3081)

    return [(ready(x), torch.tensor(y.astype(np.int64))) for x, y in examples(work)]


def plain_fit(work: Work, module: Any, data: tuple[Any, Any]) -> None:
    """One epoch of one client."""
    import torch
    from torch.nn import functional as F
    from torch.utils.data import DataLoader, TensorDataset

    walk = torch.optim.SGD(module.parameters(), lr=0.005, momentum=0.9)
    for x, y in DataLoader(TensorDataset(*data), batch_size=work.batch, shuffle=True):
        walk.zero_grad()
        F.cross_entropy(module(x).flatten(0, -2), y.flatten()).backward()
        walk.step()


@contextmanager
def plain(work: Work, threads: int | None = None) -> Iterator[Callable[[], float]]:
    import torch

    if threads:
        torch.set_num_threads(threads)
    module, data = plain_module(work), plain_data(work)
    start = {k: v.clone() for k, v in module.state_dict().items()}

    def round() -> float:
        began = time.perf_counter()
        for mine in data:
            module.load_state_dict(start)
            plain_fit(work, module, mine)
            _ = {k: v.numpy().copy() for k, v in module.state_dict().items()}
        return time.perf_counter() - began

    yield round


# --- ours -------------------------------------------------------------------------------------------------


@contextmanager
def ours(work: Work, precision: Any) -> Iterator[Callable[[], float]]:
    from fedforget.examples import Examples
    from fedforget.federation import FitTask, Learner, Place
    from fedforget.learners.torch import CNN, SGD, NanoGPT, open_cohort

    learner: Learner = NanoGPT(LETTERS, WINDOW, sgd=SGD(batch=work.batch))
    if work.model == "cnn":
        learner = CNN(work.image, 10, (0.1307,), (0.3081,), sgd=SGD(batch=work.batch), precision=precision)
    elif precision != "fp32":
        raise Absent("the nanoGPT computes in float32 only")
    clients = {f"c{i:02d}": Examples(x, y) for i, (x, y) in enumerate(examples(work))}
    start = learner.init(0)
    tasks = [FitTask(Place(0, 0, 0), client, start, 1, i) for i, client in enumerate(clients)]
    with open_cohort(learner, clients, device="cpu") as cohort:

        def round() -> float:
            began = time.perf_counter()
            assert len(list(cohort.fit(tasks))) == CLIENTS
            return time.perf_counter() - began

        yield round


# --- peers ------------------------------------------------------------------------------------------------


class Absent(Exception):
    """A contender that is not there, and why."""


@contextmanager
def flower(work: Work) -> Iterator[Callable[[], float]]:
    """Flower's simulation engine on Ray: one virtual client a processor, the plain loop in each.

    A run is two rounds after a first; the time of a round is the mean of the two, between the server's own stamps.
    """
    try:
        import flwr  # noqa: F401
        import ray  # noqa: F401
        from flwr.client import NumPyClient
        from flwr.clientapp import ClientApp
        from flwr.common import ndarrays_to_parameters
        from flwr.server import ServerAppComponents, ServerConfig
        from flwr.server.strategy import FedAvg
        from flwr.serverapp import ServerApp
        from flwr.simulation import run_simulation
    except ImportError as fault:
        raise Absent(f"flwr[simulation] does not import here: {fault}") from fault
    where = Path(__file__).resolve().parent

    def client_of(context: Any) -> Any:
        sys.path.insert(0, str(where))
        import torch

        import cohort as bench

        torch.set_num_threads(1)

        class Client(NumPyClient):  # type: ignore[misc]
            def fit(self, parameters: Any, config: Any) -> Any:
                module = bench.plain_module(work)
                names = list(module.state_dict())
                module.load_state_dict({n: torch.tensor(p) for n, p in zip(names, parameters, strict=True)})
                mine = bench.cached_data(work)[int(context.node_config["partition-id"])]
                bench.plain_fit(work, module, mine)
                return [v.numpy() for v in module.state_dict().values()], EXAMPLES, {}

        return Client().to_client()

    def round() -> float:
        stamps: list[float] = []

        class Timed(FedAvg):  # type: ignore[misc]
            def aggregate_fit(self, *args: Any) -> Any:
                stamps.append(time.perf_counter())
                return super().aggregate_fit(*args)

        start = ndarrays_to_parameters([v.numpy() for v in plain_module(work).state_dict().values()])
        strategy = Timed(fraction_evaluate=0.0, min_available_clients=CLIENTS, initial_parameters=start)
        config = ServerConfig(num_rounds=3)
        run_simulation(
            server_app=ServerApp(server_fn=lambda _: ServerAppComponents(strategy=strategy, config=config)),
            client_app=ClientApp(client_fn=client_of),
            num_supernodes=CLIENTS,
            backend_config={"client_resources": {"num_cpus": 1, "num_gpus": 0.0}},
        )
        return (stamps[-1] - stamps[0]) / (len(stamps) - 1)

    yield round


_DATA: dict[Work, list[tuple[Any, Any]]] = {}


def cached_data(work: Work) -> list[tuple[Any, Any]]:
    if work not in _DATA:
        _DATA[work] = plain_data(work)
    return _DATA[work]


@contextmanager
def pfl(work: Work) -> Iterator[Callable[[], float]]:
    """Apple's pfl: its federated averaging, model and trainer, in this process, torch's threads as they are."""
    try:
        import torch
        from pfl.aggregate.simulate import SimulatedBackend
        from pfl.algorithm.base import NNAlgorithmParams
        from pfl.algorithm.federated_averaging import FederatedAveraging
        from pfl.callback.base import TrainingProcessCallback
        from pfl.data.dataset import Dataset
        from pfl.data.federated_dataset import FederatedDataset
        from pfl.hyperparam.base import NNEvalHyperParams, NNTrainHyperParams
        from pfl.internal.ops import pytorch_ops  # noqa: F401
        from pfl.metrics import Metrics, Weighted
        from pfl.model.pytorch import PyTorchModel
        from torch.nn import functional as F
    except ImportError as fault:
        raise Absent(f"pfl does not import here: {fault}") from fault

    inner = plain_module(work)

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, x: Any) -> Any:
            return self.inner(x)

        def loss(self, x: Any, y: Any, is_eval: bool = False) -> Any:
            return F.cross_entropy(self(x).flatten(0, -2), y.flatten())

        def metrics(self, x: Any, y: Any, eval: bool = True) -> Any:
            return {"loss": Weighted(0.0, len(y))}

    data = plain_data(work)
    users = itertools.count()
    federated = FederatedDataset(
        lambda user: Dataset(raw_data=list(data[user]), user_id=str(user)), lambda: next(users) % CLIENTS
    )
    net = Net()
    model = PyTorchModel(
        net,
        local_optimizer_create=lambda p, **kw: torch.optim.SGD(p, lr=0.005, momentum=0.9),
        central_optimizer=torch.optim.SGD(net.parameters(), lr=1.0),
    )
    backend = SimulatedBackend(training_data=federated, val_data=None)
    walk = NNTrainHyperParams(local_num_epochs=1, local_learning_rate=0.005, local_batch_size=work.batch)
    ask = NNAlgorithmParams(
        central_num_iterations=3, evaluation_frequency=10**6, train_cohort_size=CLIENTS, val_cohort_size=0
    )

    class Stamps(TrainingProcessCallback):  # type: ignore[misc]
        def __init__(self) -> None:
            self.times: list[float] = []

        def after_central_iteration(self, *_: Any, **__: Any) -> Any:
            self.times.append(time.perf_counter())
            return False, Metrics()

    def round() -> float:
        stamps = Stamps()
        FederatedAveraging().run(
            ask, backend, model, walk, NNEvalHyperParams(local_batch_size=work.batch), callbacks=[stamps]
        )
        return (stamps.times[-1] - stamps.times[0]) / (len(stamps.times) - 1)  # the first is evaluated as well

    yield round


# --- the limit --------------------------------------------------------------------------------------------


def gemms(work: Work) -> list[tuple[str, float]]:
    """The work's products: (key of a measured rate, floating-point operations of the whole round)."""
    every = CLIENTS * EXAMPLES
    if work.model == "nanogpt":
        place = 2 * (4 * 12 * 16 * 16 + LETTERS * 16)
        attention = 2 * 4 * 2 * WINDOW * 16
        return [("gemm", 3.0 * every * WINDOW * (place + attention))]
    high, wide, channels = work.image
    first = 2.0 * high * wide * channels * 25 * 32
    second = 2.0 * (high // 2) * (wide // 2) * 32 * 25 * 64
    dense = 2.0 * (64 * (high // 4) * (wide // 4) * 256 + 256 * 10)
    # No gradient is asked of the pictures, so the first layer is passed twice, the others three times.
    return [("conv", every * (2 * first + 3 * second)), ("gemm", every * 3 * dense)]


@contextmanager
def limit(work: Work, dtype: str) -> Iterator[Callable[[], float]]:
    """The time the products alone would take on all processors at the rate of oneDNN's best on one thread.

    The rate is that of the second layer's forward convolution and of a dense product, repeated in cache; the machine's
    processors are taken to run at it at once, so it is measured with one such loop on each of them.
    """
    import torch

    torch.set_num_threads(1)
    kind = getattr(torch, dtype)
    n = work.batch
    high, wide = work.image[0] // 2, work.image[1] // 2
    x = torch.randn(n, 32, high, wide, dtype=kind).contiguous(memory_format=torch.channels_last)
    w = torch.randn(64, 32, 5, 5, dtype=kind).contiguous(memory_format=torch.channels_last)
    side = 256 if work.model == "cnn" else 64
    a, b = torch.randn(side, 1024, dtype=kind), torch.randn(side, 1024, dtype=kind)
    product: Any = torch.ops.mkldnn._linear_pointwise

    def rate(call: Callable[[], Any], operations: float) -> float:
        call()
        began, count = time.perf_counter(), 0
        while time.perf_counter() - began < 0.3:
            call()
            count += 1
        return count * operations / (time.perf_counter() - began)

    def round() -> float:
        with torch.no_grad():
            rates = {
                "conv": rate(lambda: torch.conv2d(x, w, padding=2), n * 2.0 * high * wide * 32 * 25 * 64),
                "gemm": rate(lambda: product(a, b, None, "none", [], ""), 2.0 * side * side * 1024),
            }
        return sum(operations / rates[key] for key, operations in gemms(work))

    yield round


# --- running ----------------------------------------------------------------------------------------------

MAKERS: dict[str, Callable[[Work], Any]] = {
    "ours fp32": lambda work: ours(work, "fp32"),
    "ours bf16": lambda work: ours(work, "bf16"),
    "plain loop": plain,
    "plain loop, 1 thread": lambda work: plain(work, 1),
    "flower": flower,
    "pfl": pfl,
    "limit fp32": lambda work: limit(work, "float32"),
    "limit bf16": lambda work: limit(work, "bfloat16"),
}


def serve(contender: str, work: Work) -> None:
    """A contender's process: one line in, one round, its seconds out."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what peers print goes to stderr
    try:
        with MAKERS[contender](work) as round:
            print(json.dumps({"ready": True}), file=out, flush=True)
            for _ in sys.stdin:
                print(json.dumps({"seconds": round()}), file=out, flush=True)
    except Absent as fault:
        print(json.dumps({"absent": str(fault)}), file=out, flush=True)


class Contender:
    """The other end of `serve`; `copies` of it run at once and the mean counts (the limit: one a processor)."""

    def __init__(self, name: str, work: Work, python: str, quiet: bool, copies: int = 1) -> None:
        self.absent = ""
        self.times: list[float] = []
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONSTARTUP"}
        environment["RAY_DEDUP_LOGS"] = "0"
        command = [python, str(HERE), "--serve", name, str(WORKS.index(work))]
        self.processes = [
            subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL if quiet else None,
                text=True,
                env=environment,
            )
            for _ in range(copies)
        ]
        for process in self.processes:
            self._read(process, "ready")

    def _read(self, process: subprocess.Popen[str], key: str) -> Any:
        assert process.stdout is not None
        line = process.stdout.readline()
        answer = json.loads(line) if line else {"absent": "it broke; --verbose shows how"}
        self.absent = self.absent or answer.get("absent", "")
        return answer.get(key)

    def round(self, keep: bool = True) -> None:
        if self.absent:
            return
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        seconds = [self._read(process, "seconds") for process in self.processes]
        if keep and not self.absent:
            self.times.append(sum(seconds) / len(seconds) / len(seconds))

    def close(self) -> None:
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    @property
    def best(self) -> float | None:
        return min(self.times) if self.times else None


def default_python(name: str, peers: str | None) -> str:
    return peers if peers and name in ("flower", "pfl") else sys.executable


def measure(work: Work, names: list[str], repeat: int, peers: str | None, quiet: bool) -> dict[str, Any]:
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    field = {
        name: Contender(name, work, default_python(name, peers), quiet, processors if "limit" in name else 1)
        for name in names
    }
    for one in field.values():
        one.round(keep=False)  # warm
    for turn in range(repeat):
        for name in names if turn % 2 else reversed(names):
            field[name].round()
    for one in field.values():
        one.close()
    return {
        "work": asdict(work),
        "seconds": {name: one.best for name, one in field.items()},
        "all": {name: one.times for name, one in field.items()},
        "absent": {name: one.absent for name, one in field.items() if one.absent},
    }


def verdicts(result: dict[str, Any]) -> dict[str, float]:
    """The ratios that are claimed; above 1 is faster."""
    s = result["seconds"]
    mine, rough, loop = s.get("ours fp32"), s.get("ours bf16"), s.get("plain loop")
    peers = [s[name] for name in ("flower", "pfl") if s.get(name)]
    found = {
        "fp32 over the plain loop": loop / mine if mine and loop else None,
        "bf16 over the plain loop": loop / rough if rough and loop else None,
        "fp32 over the fastest peer": min(peers) / mine if mine and peers else None,
        "fp32, share of the limit": s["limit fp32"] / mine if mine and s.get("limit fp32") else None,
        "bf16, share of the limit": s["limit bf16"] / rough if rough and s.get("limit bf16") else None,
    }
    return {name: value for name, value in found.items() if value is not None}


SHORT = {
    "fp32 over the plain loop": "fp32 ÷ loop",
    "bf16 over the plain loop": "bf16 ÷ loop",
    "fp32 over the fastest peer": "fp32 ÷ peer",
    "fp32, share of the limit": "of limit",
    "bf16, share of the limit": "bf16 of limit",
}


def show(result: dict[str, Any]) -> None:
    print(f"\n{result['work']['name']}: {CLIENTS} clients x {EXAMPLES} examples x 1 epoch")
    loop = result["seconds"].get("plain loop")
    for name, best in result["seconds"].items():
        if best is None:
            print(f"  {name:22s}       -   {result['absent'].get(name, '')}")
            continue
        middle = sorted(result["all"][name])[len(result["all"][name]) // 2]
        against = f"{loop / best:6.2f} x plain" if loop else ""
        print(f"  {name:22s} {best:7.2f} s {against}   (median {middle:.2f})")
    for name, value in verdicts(result).items():
        print(f"  {name:30s} {value:5.2f}")


def table(results: list[dict[str, Any]]) -> str:
    """The best turns in seconds, a work a row, with the ratios that are claimed."""
    names = [name for name in MAKERS if any(r["seconds"].get(name) for r in results)]
    lines = ["| work | " + " | ".join(names) + " | " + " | ".join(SHORT.values()) + " |"]
    lines.append("|---" * 1 + "|---:" * (len(names) + len(SHORT)) + "|")
    for result in results:
        cells = [f"{s:.2f}" if (s := result["seconds"].get(name)) else "–" for name in names]
        found = verdicts(result)
        cells += [f"{found[name]:.2f}" if name in found else "–" for name in SHORT]
        lines.append(f"| {result['work']['name']} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3, help="turns each contender gets; the best counts")
    parser.add_argument("--peers-python", help="an interpreter with flwr[simulation] and pfl")
    parser.add_argument("--only", help="works whose name contains this")
    parser.add_argument("--without", action="append", default=[], help="contenders to leave out")
    parser.add_argument("--json", type=Path, help="write all times there")
    parser.add_argument("--table", type=Path, metavar="JSON", help="print a stored run as a Markdown table and end")
    parser.add_argument("--verbose", action="store_true", help="show what contenders print")
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve[0], WORKS[int(options.serve[1])])
        return
    if options.table:
        print(table(json.loads(options.table.read_text())))
        return
    results = []
    for work in WORKS:
        if options.only and options.only not in work.name:
            continue
        names = [name for name in MAKERS if name not in options.without]
        results.append(measure(work, names, options.repeat, options.peers_python, not options.verbose))
        show(results[-1])
    if options.json:
        options.json.write_text(json.dumps([r | {"ratios": verdicts(r)} for r in results], indent=1) + "\n")


if __name__ == "__main__":
    main()
