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
    def train(seconds: float = 45.0, learning_rate: float = 0.5) -> dict:
        """Softmax regression from one character to the next, trained by gradient descent for some seconds."""
        import json
        import os
        import time
        from pathlib import Path

        import numpy as np

        try:
            import torch

            print("torch sees", torch.cuda.device_count(), "CUDA devices")
        except ImportError:
            print("no torch here; numpy trains on", os.environ["GPUPOOL_DEVICES"])

        text = Path(json.__file__).read_text(encoding="utf-8")
        letters = sorted(set(text))
        index = {letter: i for i, letter in enumerate(letters)}
        codes = np.array([index[letter] for letter in text])
        before, after = np.eye(len(letters))[codes[:-1]], codes[1:]
        weights, loss, step = np.zeros((len(letters), len(letters))), float("nan"), 0
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            scores = before @ weights
            chances = np.exp(scores - scores.max(axis=1, keepdims=True))
            chances /= chances.sum(axis=1, keepdims=True)
            loss = float(-np.log(chances[np.arange(len(after)), after]).mean())
            chances[np.arange(len(after)), after] -= 1
            weights -= learning_rate * len(letters) * (before.T @ chances) / len(after)
            step += 1
            if step % 50 == 0:
                print(f"step {step}: loss {loss:.4f} nats per character", flush=True)

        artifacts = Path(os.environ["GPUPOOL_ARTIFACTS"])
        np.savez(artifacts / "model.npz", weights=weights, letters=letters)
        metrics = {"loss_nats": round(loss, 4), "steps": step, "characters": len(text)}
        (artifacts / "metrics.json").write_text(json.dumps(metrics))
        return metrics

    train()
