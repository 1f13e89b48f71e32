"""scikit-learn's own contract."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from paretoda import ParetoDAClassifier, ParetoDATransformer


@parametrize_with_checks([ParetoDAClassifier(steps=20, bottleneck=8), ParetoDATransformer(steps=4, bottleneck=8)])
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)
