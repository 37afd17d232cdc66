"""What arrays and settings are refused, and in which words."""

from __future__ import annotations

import math

import numpy as np
import pytest

from solvers.numerics.checks import (
    require_choice,
    require_columns,
    require_count,
    require_counts,
    require_finite,
    require_flag,
    require_fraction,
    require_gated_inputs,
    require_inputs,
    require_instance,
    require_labels,
    require_path,
    require_positive,
    require_real,
    require_scale,
    require_seed,
    require_shape,
    require_text,
    require_tolerance,
)
from solvers.numerics.intake import refuse_masked

X = np.ones((3, 2))


def test_what_is_well_formed_passes() -> None:
    require_columns("X", X, 2)
    require_count("n", np.int64(1))
    require_count("n", 0, least=0)
    require_finite("X", X)
    require_fraction("share", 0.0)
    require_gated_inputs(X, np.ones((3, 1)))
    require_inputs(X)
    require_positive("rate", 1e-300)
    require_shape("y", X[:, 0], (3,))
    require_tolerance(1e-8)


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (
            lambda: require_inputs(X[:0]),
            r"shape \(n, D\) with n, D >= 1, got \(0, 2\)",
        ),
        (lambda: require_inputs(X[0]), r"got \(2,\)$"),
        (lambda: require_columns("X", X, 3, "so many"), r"shape \(n, 3\), got \(3, 2\): so many$"),
        (lambda: require_columns("X", X[0], 2), r"shape \(n, 2\), got \(2,\)$"),
        (lambda: require_gated_inputs(X, X[:2]), r"`Z` must have shape \(3, J\)"),
        (
            lambda: require_shape("y", X, (3,), "one a row"),
            r"shape \(3,\), got \(3, 2\): one a row",
        ),
        (lambda: require_finite("y", X * math.nan), "`y` has entries that are NaN"),
        (lambda: require_count("n", 0), "`n` must be at least 1, got 0"),
        (lambda: require_count("n", -1, least=0), "`n` must be at least 0, got -1"),
        (lambda: require_positive("rate", 0.0), "`rate` must be positive and finite, got 0.0"),
        (lambda: require_positive("rate", math.inf), "got inf"),
        (lambda: require_positive("rate", math.nan), "got nan"),
        (lambda: require_fraction("share", 1.0, "why"), r"must lie in \[0, 1\), got 1.0: why"),
        (lambda: require_fraction("share", math.nan), "got nan"),
        (lambda: require_tolerance(1.0), "strictly between 0 and 1, got 1.0"),
    ],
)
def test_what_is_not_is_refused_with_what_was_wanted_and_what_came(check, message) -> None:
    with pytest.raises(ValueError, match=message):
        check()


@pytest.mark.parametrize("value", [1.0, True, "1"])
def test_a_count_is_a_whole_number(value) -> None:
    with pytest.raises(TypeError, match="`n` must be an integer"):
        require_count("n", value)


@pytest.mark.parametrize(
    ("check", "kind", "message"),
    [
        (lambda: require_counts("w", (3.7, 3)), TypeError, r"`w\[0\]` must be an integer, got 3.7"),
        (lambda: require_counts("w", (3, 0)), ValueError, r"`w\[1\]` must be at least 1, got 0"),
        (lambda: require_counts("w", 3), TypeError, "`w` must be a sequence of integers, got 3"),
        (lambda: require_counts("w", "33"), TypeError, "`w` must be a sequence of integers"),
        (lambda: require_seed("s", 1.5), TypeError, "`s` must be an integer or a numpy Gen"),
        (lambda: require_seed("s", -1), ValueError, "`s`"),
        (lambda: require_flag("f", "yes"), TypeError, "`f` must be True or False, got 'yes'"),
        (lambda: require_text("t", 5), TypeError, "`t` must be a string, got 5"),
        (lambda: require_choice("c", "lo", ("low",)), ValueError, "`c`.*'lo'"),
        (lambda: require_path("p", 5), TypeError, "`p` must be a path, got 5"),
        (
            lambda: require_real("X", X * 1j),
            TypeError,
            "`X` must hold real numbers, got dtype comp",
        ),
        (lambda: require_real("X", np.array(["a"])), TypeError, "`X` must hold numbers, got str"),
        (lambda: require_instance("r", 5, dict), TypeError, "`r` must be a dict, got 5"),
        (lambda: require_scale("X", X * 1e160), ValueError, "`X` has a largest entry of 1e.160"),
        (lambda: require_labels(np.array([1.0, 0.0])), ValueError, "`y`"),
        (
            lambda: refuse_masked("X", np.ma.masked_array(X, X > 0)),
            TypeError,
            "`X` is a masked array",
        ),
    ],
)
def test_each_kind_is_refused_by_its_own_check(check, kind, message) -> None:
    with pytest.raises(kind, match=message):
        check()
