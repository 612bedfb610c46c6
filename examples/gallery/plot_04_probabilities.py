"""
Probabilities without a validation set
======================================

``calibrate="loo"`` fits a logistic curve to exact leave-one-out outputs, so that no rows are held back.
"""

import matplotlib.pyplot as plt
from sklearn.calibration import CalibrationDisplay
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from ocrep import PinvClassifier
from ocrep.datasets import load

X, y = load("diabetes", return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
model = PinvClassifier(300, calibrate="loo", random_state=0).fit(X_train, y_train)
probabilities = model.predict_proba(X_test)
print(f"log-loss on new rows: {log_loss(y_test, probabilities):.3f}, accuracy {model.score(X_test, y_test):.3f}")

# %%
# Among the rows that get a probability of 0.7, about 70 % should be positive.
fig, ax = plt.subplots(figsize=(5, 4), layout="constrained")
CalibrationDisplay.from_predictions(
    y_test, probabilities[:, 1], n_bins=6, pos_label=model.classes_[1], ax=ax, name="ocrep"
)
plt.show()
