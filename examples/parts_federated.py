"""Three parties train one model together, and exchange surveys and parts only: `python examples/parts_federated.py`.

No row leaves its party. What does leave it is said in docs/parts.md: a part is a summary, and no protection by itself.
"""

from functools import reduce

import numpy as np

from ocrep import PinvRegressor, parts
from ocrep.datasets import load


class Party:
    """Somebody who holds rows, and answers with bytes."""

    def __init__(self, number, X, y):
        self.number, self._X, self._y = number, X, y

    def survey(self, plan):
        return plan.survey(self._X, self._y, part_number=self.number).to_bytes()

    def part(self, plan):
        return plan.of(self._X, self._y, part_number=self.number).to_bytes()


def train(model, parties):
    """What the one who coordinates does: two rounds, and bytes are all that it sees."""
    plan = parts.plan(model)
    surveys = [parts.Survey.from_bytes(party.survey(plan)) for party in parties]
    plan = plan.with_survey(reduce(parts.Survey.merge, surveys))
    made = [parts.Part.from_bytes(party.part(plan)) for party in parties]
    return plan.finish(reduce(parts.Part.merge, made), n_parts=len(parties))


def main():
    X, y = load("abalone", return_X_y=True)
    order = np.argsort(X[:, 0], kind="stable")  # parties whose rows are not alike
    parties = [Party(i, X[rows], y[rows]) for i, rows in enumerate(np.array_split(order, 3))]
    model = PinvRegressor(100, gamma="kfold", random_state=0)
    together, whole = train(model, parties), model.fit(X, y)
    difference = np.max(np.abs(together.predict(X) - whole.predict(X)))
    print(f"γ = {together.gamma_:.4g} by parts and {whole.gamma_:.4g} by fit on all rows")
    print(f"predictions differ by at most {difference:.0e} of {np.max(np.abs(y)):.0f}")
    return together, whole


if __name__ == "__main__":
    main()
