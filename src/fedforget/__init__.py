"""FedForget: federated learning that can forget."""
