"""Solvers of the small linear programme that ours is measured against, each a function of the programme."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from programmes import Form, Programme
from scipy.optimize import linprog

from paretoda.core.linear_program import maximise
from paretoda.core.problem import Vector


def _ours(programme: Programme) -> Vector | None:
    return maximise(programme.objective, programme.rows, programme.bounds)


def _scaled(programme: Programme) -> tuple[Vector, NDArray[np.float64], Vector]:
    objective, rows, bounds = programme.objective, programme.rows, programme.bounds
    kept = np.isfinite(bounds) & rows.any(axis=1)
    scales = np.abs(rows[kept]).max(axis=1)
    largest = np.abs(objective).max()
    return objective / (largest or 1.0), rows[kept] / scales[:, None], bounds[kept] / scales


def _scipy(objective: Vector, rows: NDArray[np.float64], bounds: Vector) -> Vector | None:
    kept = np.isfinite(bounds)
    ones = np.ones((1, len(objective)))
    answer = linprog(-objective, A_ub=-rows[kept], b_ub=-bounds[kept], A_eq=ones, b_eq=[1.0], method="highs")
    return np.asarray(answer.x) if answer.status == 0 else None


def _scipy_raw(programme: Programme) -> Vector | None:
    return _scipy(programme.objective, programme.rows, programme.bounds)


def _scipy_scaled(programme: Programme) -> Vector | None:
    return _scipy(*_scaled(programme))


@cache
def _engine() -> Any:
    import highspy

    engine: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    engine.setOptionValue("output_flag", False)
    engine.setOptionValue("presolve", "off")
    return engine


def _highspy_scaled(programme: Programme) -> Vector | None:
    import highspy

    objective, rows, bounds = _scaled(programme)
    left = np.vstack([np.ones(len(objective)), rows])
    lp = highspy.HighsLp()
    lp.num_row_, lp.num_col_ = left.shape
    lp.sense_ = highspy.ObjSense.kMaximize
    lp.col_cost_ = objective
    lp.col_lower_, lp.col_upper_ = np.zeros(len(objective)), np.ones(len(objective))
    lp.row_lower_ = np.append(1.0, bounds)
    lp.row_upper_ = np.append(1.0, np.full(len(bounds), np.inf))
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.arange(0, left.size + 1, left.shape[1])
    lp.a_matrix_.index_ = np.tile(np.arange(left.shape[1]), left.shape[0])
    lp.a_matrix_.value_ = left.ravel()
    engine = _engine()
    engine.passModel(lp)
    engine.run()
    if engine.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    return np.array(engine.getSolution().col_value)


@cache
def _cvxpy_model(form: Form, size: int) -> tuple[Any, ...]:
    """Built once and fed with parameters at every step, as the authors do; "dom" is not DPP and is compiled anew."""
    cvxpy: Any = import_module("cvxpy")  # its functions are re-exported in a way that mypy cannot see
    weights = cvxpy.Variable(size, nonneg=True)
    gram, dots, bounds = cvxpy.Parameter((size, size)), cvxpy.Parameter(size), cvxpy.Parameter(size)
    if form == "bal":
        goal, limits = dots @ weights, [gram @ weights >= bounds]
    else:
        goal = cvxpy.sum(gram @ weights)
        limits = [gram @ weights >= 0, dots @ weights >= cvxpy.minimum(cvxpy.max(dots), 0)]
    model = cvxpy.Problem(cvxpy.Maximize(goal), [cvxpy.sum(weights) == 1, *limits])
    return model, weights, gram, dots, bounds


def _glpk(programme: Programme, kind: type[np.floating[Any]]) -> Vector | None:
    cvxpy: Any = import_module("cvxpy")
    model, weights, gram, dots, bounds = _cvxpy_model(programme.form, len(programme.gradients))
    gradients = programme.gradients.astype(kind)
    gram.value, dots.value = gradients @ gradients.T, gradients @ programme.guide.astype(kind)
    if programme.form == "bal":
        bounds.value = programme.bounds
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # cvxpy's advice about DPP and about inaccurate answers, at every call
        try:
            model.solve(solver=cvxpy.GLPK)
        except cvxpy.SolverError:
            return None
    return None if weights.value is None else np.array(weights.value)


def _glpk_double(programme: Programme) -> Vector | None:
    return _glpk(programme, np.float64)


def _glpk_single(programme: Programme) -> Vector | None:
    return _glpk(programme, np.float32)


_NEEDS = {
    "highspy, scaled": ("highspy",),
    "cvxpy+GLPK": ("cvxpy", "cvxopt"),
    "cvxpy+GLPK, float32": ("cvxpy", "cvxopt"),
}

SOLVERS: dict[str, Callable[[Programme], Vector | None]] = {
    "ours": _ours,
    "scipy HiGHS": _scipy_raw,
    "scipy HiGHS, scaled": _scipy_scaled,
    "highspy, scaled": _highspy_scaled,
    "cvxpy+GLPK": _glpk_double,
    "cvxpy+GLPK, float32": _glpk_single,
}


def installed() -> list[str]:
    """The solvers whose packages are here."""
    return [name for name in SOLVERS if all(find_spec(package) for package in _NEEDS.get(name, ()))]
