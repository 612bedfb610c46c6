"""Probabilities from the network's outputs: a softmax fitted on what each row would get had it been left out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.linear_model import LogisticRegression

from ocrep._linalg.blocks import RowBlocks
from ocrep._linalg.leave_one_out import left_out_outputs
from ocrep._linalg.spectrum import Spectrum


@dataclass(frozen=True, slots=True, eq=False)
class Calibrator:
    """P(class | outputs) = softmax(slope·outputs + offset); for two classes, the logistic of one output."""

    slope: np.ndarray
    offset: np.ndarray

    @classmethod
    def on_left_out_rows(cls, spectrum: Spectrum, rows: RowBlocks, gamma: float) -> Calibrator:
        """Fit on the exact leave-one-out outputs of the training rows, weighted as they are."""
        outputs, codes, weights = [], [], []
        for output, T, weight in left_out_outputs(spectrum, rows, gamma):
            outputs.append(output)
            codes.append((T[:, 0] > 0).astype(int) if T.shape[1] == 1 else T.argmax(axis=1))
            weights.append(np.ones(len(T)) if weight is None else weight)
        # Left-out outputs overlap unless the classes are separable; then the slight penalty keeps the slope finite.
        model = LogisticRegression(C=100.0, max_iter=1000)
        model.fit(np.concatenate(outputs), np.concatenate(codes), sample_weight=np.concatenate(weights))
        return cls(model.coef_.T, model.intercept_)

    def scores(self, outputs: np.ndarray) -> np.ndarray:
        """The log-odds of the second class, (n_samples, 1), or the softmax's logits, one per class."""
        return (outputs @ self.slope + self.offset).astype(outputs.dtype, copy=False)

    def log_probabilities(self, outputs: np.ndarray) -> np.ndarray:
        """(n_samples, n_classes), from the logits, so that no probability becomes 0 before the logarithm."""
        logits = self.scores(outputs)
        if logits.shape[1] == 1:
            logits = np.hstack([np.zeros_like(logits), logits])
        logits = logits - logits.max(axis=1, keepdims=True)
        return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
