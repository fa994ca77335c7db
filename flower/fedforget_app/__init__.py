"""FedForget on Flower, ready to run."""
