"""The app in `tests/flower/own`, and the world in which somebody never joined it, by the plainest loop there is."""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from flwr.app import Context, Message, RecordDict
from flwr.serverapp.strategy import FedAdam, Strategy
from flwr.supercore.task_identity import TaskIdentity

from fedforget.engines.flower_strategy import StrategyTalk, step
from fedforget.federation import FitTask, Place, Upload
from fedforget.params import Params
from fedforget.seeds import derive
from fedforget.workspace import Workspace

OWN = Path(__file__).parent / "flower" / "own"
sys.path.insert(0, str(OWN))

from own_app import client_app  # noqa: E402

ZERO = Params.of({"w": np.zeros(3, np.float32)})
ROUNDS = 4


def adam() -> Strategy:
    return FedAdam(eta=0.1)


def never_joined(space: Workspace, make: Callable[[], Strategy]) -> dict[Place, str]:
    """The world without the forgotten: the plan as it is, the clients' own training, a fresh strategy a shard."""
    TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = 1, 1, 1
    plan, found = space.state().plan, {}
    talk = StrategyTalk(make, {"lr": 0.05})
    for shard in range(2):
        strategy, model = make(), ZERO
        for round in range(ROUNDS):
            place = Place(0, shard, round)
            uploads = []
            for client in plan.cohort(*place):
                task = FitTask(place, client, model, 1, derive(plan.seed, "fit", *place, client))
                message = Message(talk.write(task), 1, "train")
                context = Context(1, 1, {"partition-id": int(client[-3:])}, RecordDict(), {})
                upload = talk.read(task, client_app.train(message, context).content, 0.0)
                uploads.append(Upload(client, upload.params, upload.examples))
            model = step(strategy, place, model, uploads, {"lr": 0.05})
            found[place] = model.digest
    return found
