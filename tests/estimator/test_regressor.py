from sklearn.utils.estimator_checks import parametrize_with_checks

from paretoda import ParetoDARegressor


@parametrize_with_checks([ParetoDARegressor(steps=20, bottleneck=8)])
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)
