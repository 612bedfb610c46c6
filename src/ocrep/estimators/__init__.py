"""The public estimators: scikit-learn's interface, no numerics."""
