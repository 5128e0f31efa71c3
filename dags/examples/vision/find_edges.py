"""Score synthetic images with an edge filter until the time is up; writes a filter bank and a metric."""

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np


def main() -> None:
    """Run the batch."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--size", type=int, default=256)
    options = parser.parse_args()
    print("scoring on", os.environ.get("GPUPOOL_DEVICES", "no leased device"), flush=True)

    numbers = np.random.default_rng(7)
    sobel = np.array([[1, 0, -1], [2, 0, -2], [1, 0, -1]], dtype=float)
    bank = np.stack([sobel, sobel.T, sobel + sobel.T, sobel - sobel.T])
    spectra = np.fft.rfft2(bank, s=(options.size, options.size))
    images, strength, end = 0, 0.0, time.monotonic() + options.seconds
    while time.monotonic() < end:
        image = numbers.random((options.size, options.size))
        edges = np.abs(np.fft.irfft2(np.fft.rfft2(image) * spectra, s=image.shape))
        strength += float(edges.mean())
        images += 1
        if images % 500 == 0:
            print(f"{images} images, mean edge strength {strength / images:.4f}", flush=True)

    artifacts = Path(os.environ.get("GPUPOOL_ARTIFACTS", "."))
    np.save(artifacts / "filter_bank.npy", bank)
    metrics = {"images": images, "mean_edge_strength": round(strength / max(images, 1), 4)}
    (artifacts / "metrics.json").write_text(json.dumps(metrics))
    print("done:", metrics)


if __name__ == "__main__":
    main()
