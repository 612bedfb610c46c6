"""scikit-learn's own checks of arrays, on strict arrays; they need SCIPY_ARRAY_API=1 before SciPy is imported."""

from sklearn.utils import estimator_checks, get_tags

from ocrep import PinvClassifier, PinvRegressor, RandomLayer, TikhonovClassifier, TikhonovRegressor

ESTIMATORS = [
    RandomLayer(8),
    PinvRegressor(8),
    PinvRegressor(8, gamma="kfold", direct_link=True),
    PinvClassifier(8),
    PinvClassifier(8, calibrate="loo"),
    TikhonovRegressor(),
    TikhonovClassifier(calibrate="loo"),
]

if __name__ == "__main__":
    for estimator in ESTIMATORS:
        name = type(estimator).__name__
        assert get_tags(estimator).array_api_support
        for device, dtype in (("CPU_DEVICE", "float64"), ("device1", "float32")):
            given = {"array_namespace": "array_api_strict", "device_name": device, "dtype_name": dtype}
            estimator_checks.check_array_api_input(name, estimator, **given, check_values=dtype == "float64")
        estimator_checks.check_array_api_same_namespace(name, estimator, array_namespace="array_api_strict")
        print(name)
