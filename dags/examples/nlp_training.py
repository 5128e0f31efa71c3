"""Team nlp: train a character language model on one device and keep model and metric as artifacts."""

from airflow.sdk import DAG, task

with DAG(
    "example_nlp_training",
    schedule=None,
    tags=["example", "team:nlp"],
    default_args={"owner": "nlp"},
    doc_md=__doc__,
):

    @task.gpu(queue="nlp-training", devices=1, max_runtime="30m")
    def train(seconds: float = 45.0, learning_rate: float = 20.0) -> dict:
        """Softmax regression from one character to the next, by gradient descent, on torch where it is installed."""
        import json
        import os
        import time
        from pathlib import Path

        import numpy as np

        text = Path(json.__file__).read_text(encoding="utf-8")
        letters = sorted(set(text))
        codes = np.array([letters.index(letter) for letter in text])
        before, after = codes[:-1], codes[1:]

        def with_torch():
            import torch

            device = "cuda" if torch.cuda.is_available() else "cpu"
            inputs, targets = (torch.tensor(part, device=device) for part in (before, after))
            weights = torch.zeros((len(letters), len(letters)), device=device, requires_grad=True)
            optimizer = torch.optim.SGD([weights], lr=learning_rate)

            def step() -> float:
                optimizer.zero_grad()
                loss = torch.nn.functional.cross_entropy(weights[inputs], targets)
                loss.backward()
                optimizer.step()
                return float(loss.detach())

            return f"torch on {device}", step, lambda: weights.detach().cpu().numpy()

        def with_numpy():
            inputs, rows = np.eye(len(letters))[before], np.arange(len(after))
            weights = np.zeros((len(letters), len(letters)))

            def step() -> float:
                chances = np.exp(inputs @ weights)
                chances /= chances.sum(axis=1, keepdims=True)
                loss = float(-np.log(chances[rows, after]).mean())
                chances[rows, after] -= 1
                weights[:] -= learning_rate * (inputs.T @ chances) / len(after)
                return loss

            return "numpy", step, lambda: weights

        try:
            engine, step, weights = with_torch()
        except ImportError:
            engine, step, weights = with_numpy()
        print(f"training with {engine} on {os.environ['GPUPOOL_DEVICES']}", flush=True)

        steps, loss, end = 0, float("nan"), time.monotonic() + seconds
        while time.monotonic() < end:
            loss, steps = step(), steps + 1
            if steps % 250 == 0:
                print(f"step {steps}: loss {loss:.4f} nats per character", flush=True)

        artifacts = Path(os.environ["GPUPOOL_ARTIFACTS"])
        np.savez(artifacts / "model.npz", weights=weights(), letters=letters)
        metrics = {"loss_nats": round(loss, 4), "steps": steps, "characters": len(text), "engine": engine}
        (artifacts / "metrics.json").write_text(json.dumps(metrics))
        return metrics

    train()
