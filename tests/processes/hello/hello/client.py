"""A node answers with its node-config."""

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

app = ClientApp()


@app.query()
def query(message: Message, context: Context) -> Message:
    said = message.content["greeting"]["text"]
    if context.node_config.get("fault") == "crash":
        raise RuntimeError("this node was told to crash")
    return Message(RecordDict({"said": ConfigRecord({"text": said, **context.node_config})}), reply_to=message)
