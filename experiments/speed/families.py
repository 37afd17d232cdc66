"""Every family of programs, with the sizes that it grows in: one line of `GROWTHS` a growth.

Gated programs of two classes and ReLU networks are given images; all others samples that are made
for them, of as many inputs and classes as asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from torch.nn import Module

import implicit_bias as ib
from solvers import Answer

from .cases import SEED, Array, gaussian_gates, halves

Call = Callable[[], Answer]


@dataclass(frozen=True)
class Growth:
    """One size that grows, the others held.

    Attributes
    ----------
    family : str
        What is solved for.
    held : str
        All sizes, the one that grows as its letter.
    letter : str
    values : tuple of int
    made
        From the folder of images, if there is one, and a value to the call that is measured.
    further : tuple of int
        Values for a folder of images: the bundled digits are too few.
    """

    family: str
    held: str
    letter: str
    values: tuple[int, ...]
    made: Callable[[Path | None, int], Call]
    further: tuple[int, ...] = ()


_images = cache(halves)


def planted(n: int, n_inputs: int, n_classes: int = 2) -> tuple[Array, Array]:
    """Normal inputs (n, D) and the classes (n,) of a planted matrix, samples near ties left out."""
    rng = np.random.default_rng(SEED)
    X = rng.normal(size=(2 * n, n_inputs))
    scores = X @ rng.normal(size=(n_inputs, n_classes))
    first, second = np.partition(scores, -2)[:, :-3:-1].T
    kept = np.argsort(second - first)[:n]
    return X[kept], np.argmax(scores[kept], axis=1)


def signs(n: int, n_inputs: int) -> tuple[Array, Array]:
    """The same of two classes, with labels -1 and 1."""
    X, labels = planted(n, n_inputs)
    return X, 2.0 * labels - 1


def _linear(n: int, D: int, norm: str) -> Call:
    return partial(ib.solve_linear_svm, *signs(n, D), norm=norm)


def _contexts(solve: Callable[..., Any], d: Path | None, H: int, C: int, n: int) -> Call:
    """A program of median contexts of images."""
    X, y = _images(d, n)
    contexts = ib.HyperplaneContexts(H, C, random_state=SEED).fit_transform(X)
    return partial(solve, X, y, contexts)


def _gates(d: Path | None, n: int, H: int) -> tuple[Array, Array, Array]:
    """Images behind the gates of random Gaussian units."""
    X, y = _images(d, n)
    return X, y, gaussian_gates(X, H)


def _deep_gates(d: Path | None, n: int, H: int) -> Call:
    """Two layers of H units each."""
    X, y, gates = _gates(d, n, 2 * H)
    return partial(ib.solve_path_lasso, X, y, gates, widths=(H, H))


def _classes(n: int, D: int, K: int, norm: str) -> Call:
    return partial(ib.limits.solve_multiclass_svm, *planted(n, D, K), norm=norm)


def _fit(n: int, D: int, loss: str) -> Call:
    return partial(ib.limits.solve_fit, *signs(n, D), loss=loss, penalty=1e-3)


def _kernel(solve: Callable[..., Any], n: int) -> Call:
    """A program of the Gaussian kernel."""
    X, y = signs(n, 50)
    return partial(solve, np.exp(-cdist(X, X, "sqeuclidean") / 100), y)


def _trained(network: Module, *samples: Array) -> tuple[Any, ...]:
    """A network after some training, and the samples."""
    settings = ib.TrainingSettings(trainer="annealed", schedule=((300, None),))
    ib.train(network, *samples, settings=settings)
    return network, *samples


def _network(d: Path | None, n: int, H: int) -> Call:
    X, y = _images(d, n)
    network = ib.ReLU(X.shape[1], H, init="kaiming", init_scale=0.3, random_state=SEED)
    return partial(ib.limits.relu_local_limit, *_trained(network, X, y), max_patterns=1)


def _deep_network(n: int, D: int, H: int) -> Call:
    X, y = signs(n, D)
    network = ib.DGN(D, widths=(H, H), random_state=SEED)
    return partial(ib.local_limit, *_trained(network, X, y, gaussian_gates(X, 2 * H)))


def _fixed_outer(n: int, D: int, H: int) -> Call:
    outer = np.where(np.arange(H) % 2, 1.0, -1.0)
    return partial(ib.limits.solve_fixed_outer, *signs(n, D), outer, slope=0.5, max_patterns=0)


def _tokens(n: int, T: int, D: int) -> Call:
    data = ib.datasets.make_tokens(n, T, D, random_state=SEED)
    return partial(ib.limits.solve_token_svm, data.X, data.queries, data.scores)


def _next_token(m: int, D: int, V: int) -> Call:
    """Contexts (m, D) with two of V tokens in the support of each."""
    rng = np.random.default_rng(SEED)
    chances = np.zeros((m, V))
    for row in chances:
        row[rng.choice(V, 2, replace=False)] = 0.3, 0.7
    return partial(ib.limits.solve_next_token, rng.normal(size=(m, D)), chances)


def _distillation(n: int, D: int) -> Call:
    rng = np.random.default_rng(SEED)
    return partial(ib.distillation.distillation_limit, rng.normal(size=(n, D)), rng.normal(size=D))


def _diagonal(n: int, D: int) -> Call:
    X, y = signs(n, D)
    return partial(ib.limits.solve_diagonal, X, y, np.full(D, 0.1))


def _gated_ols(n: int, D: int, H: int) -> Call:
    X, y = signs(n, D)
    gates = np.random.default_rng(SEED).integers(0, 2, size=(n, H))
    return partial(ib.solve_gated_ols, X, y, gates)


def _heads(n: int, D: int, K: int) -> Call:
    X, labels = planted(n, D, K)
    teacher = X @ np.random.default_rng(0).normal(size=(D, K))
    return lambda: ib.heads.solve_exit_heads([X], labels, teacher=teacher)[0]


def _orthosep(n: int, D: int) -> Call:
    return partial(ib.solve_orthosep, *ib.datasets.make_orthosep(n, D, random_state=SEED))


GROWTHS = (
    Growth("linear, l2", "(n, 50)", "n", (8000, 32000, 128000, 512000),
           lambda _, n: _linear(n, 50, "l2")),
    Growth("linear, l2", "(1000, D)", "D", (400, 1600, 6400, 25600),
           lambda _, D: _linear(1000, D, "l2")),
    Growth("linear, linf", "(n, 50)", "n", (2000, 8000, 32000, 128000),
           lambda _, n: _linear(n, 50, "linf")),
    Growth("linear, linf", "(500, D)", "D", (200, 800, 3200, 12800),
           lambda _, D: _linear(500, D, "linf")),
    Growth("linear, l1", "(n, 50)", "n", (2000, 8000, 32000, 128000),
           lambda _, n: _linear(n, 50, "l1")),
    Growth("linear, l1", "(500, D)", "D", (200, 800, 3200, 12800),
           lambda _, D: _linear(500, D, "l1")),
    Growth("GLN", "(20, 2, n)", "n", (250, 500, 1000, 1600),
           lambda d, n: _contexts(ib.solve_gln_svm, d, 20, 2, n), (3200, 6400)),
    Growth("GLN", "(H, 4, 500)", "H", (20, 80, 320, 1280),
           lambda d, H: _contexts(ib.solve_gln_svm, d, H, 4, 500)),
    Growth("GLN", "(20, C, 500)", "C", (4, 8, 16, 32),
           lambda d, C: _contexts(ib.solve_gln_svm, d, 20, C, 500)),
    Growth("GLN, l2", "(20, 2, n)", "n", (250, 500, 1000, 1600),
           lambda d, n: _contexts(ib.solve_gln_l2_svm, d, 20, 2, n), (3200,)),
    Growth("SVM of each context", "(4, 2, n)", "n", (250, 500, 1000, 1600),
           lambda d, n: _contexts(ib.solve_shallow_gln_svm, d, 4, 2, n), (3200,)),
    Growth("SVM of each context", "(H, 2, 1000)", "H", (2, 4, 8, 16),
           lambda d, H: _contexts(ib.solve_shallow_gln_svm, d, H, 2, 1000)),
    Growth("frozen ReLU", "(20, n)", "n", (250, 500, 1000, 1600),
           lambda d, n: partial(ib.solve_frelu_svm, *_gates(d, n, 20)), (3200,)),
    Growth("frozen ReLU", "(H, 300)", "H", (80, 320, 1280, 5120),
           lambda d, H: partial(ib.solve_frelu_svm, *_gates(d, 300, H))),
    Growth("DLGN, constant experts", "(H, 300)", "H", (1280, 5120, 20480, 81920),
           lambda d, H: partial(ib.limits.solve_dlgn_svm, *_gates(d, 300, H), experts="constant")),
    Growth("paths of two layers", "(H, H, 200)", "H", (10, 20, 40, 80),
           lambda d, H: _deep_gates(d, 200, H)),
    Growth("classes, l2", "(n, 50, 10)", "n", (1000, 4000, 16000, 64000),
           lambda _, n: _classes(n, 50, 10, "l2")),
    Growth("classes, l2", "(500, 50, K)", "K", (8, 16, 32, 64),
           lambda _, K: _classes(500, 50, K, "l2")),
    Growth("classes, nuclear", "(n, 50, 10)", "n", (1000, 2000, 4000, 8000),
           lambda _, n: _classes(n, 50, 10, "nuclear")),
    Growth("classes, nuclear", "(500, 50, K)", "K", (2, 4, 8, 16),
           lambda _, K: _classes(500, 50, K, "nuclear")),
    Growth("kernel SVM", "(n, n)", "n", (500, 1000, 2000, 4000),
           lambda _, n: _kernel(ib.solve_kernel_svm, n)),
    Growth("kernel regression", "(n, n)", "n", (250, 500, 1000, 2000),
           lambda _, n: _kernel(ib.kernels.kernel_regression, n)),
    Growth("decay, squared", "(n, 50)", "n", (8000, 32000, 128000, 512000),
           lambda _, n: _fit(n, 50, "squared")),
    Growth("decay, squared", "(1000, D)", "D", (400, 1600, 6400, 25600),
           lambda _, D: _fit(1000, D, "squared")),
    Growth("decay, logistic", "(n, 50)", "n", (8000, 32000, 128000, 512000),
           lambda _, n: _fit(n, 50, "logistic")),
    Growth("decay, logistic", "(1000, D)", "D", (400, 1600, 6400, 25600),
           lambda _, D: _fit(1000, D, "logistic")),
    Growth("ReLU, near a network", "(n, 20)", "n", (50, 100, 200, 400),
           lambda d, n: _network(d, n, 20)),
    Growth("ReLU, near a network", "(100, H)", "H", (10, 40, 160),
           lambda d, H: _network(d, 100, H)),
    Growth("ReLU, any width", "(n, 3)", "n", (10, 40, 160, 640),
           lambda _, n: partial(ib.limits.solve_relu_minnorm, *signs(n, 3))),
    Growth("gated, near a network", "(100, 10, H, H)", "H", (10, 20, 40),
           lambda _, H: _deep_network(100, 10, H)),
    Growth("fixed outer weights", "(n, 50, 20)", "n", (400, 1600, 6400, 25600),
           lambda _, n: _fixed_outer(n, 50, 20)),
    Growth("fixed outer weights", "(400, 50, H)", "H", (80, 320, 1280, 5120),
           lambda _, H: _fixed_outer(400, 50, H)),
    Growth("attention", "(n, 8, 16)", "n", (100, 400, 1600, 6400),
           lambda _, n: _tokens(n, 8, 16)),
    Growth("attention", "(100, 8, D)", "D", (16, 32, 64, 128),
           lambda _, D: _tokens(100, 8, D)),
    Growth("next tokens", "(m, m, 20)", "m", (20, 40, 80, 120),
           lambda _, m: _next_token(m, m, 20)),
    Growth("next tokens", "(40, 40, V)", "V", (10, 20, 40, 60),
           lambda _, V: _next_token(40, 40, V)),
    Growth("convolution", "(n, 64)", "n", (800, 3200, 12800, 51200),
           lambda _, n: partial(ib.limits.solve_convolution, *signs(n, 64))),
    Growth("convolution", "(100, D)", "D", (64, 256, 1024, 4096),
           lambda _, D: partial(ib.limits.solve_convolution, *signs(100, D))),
    Growth("convolution, 3 layers", "(100, D)", "D", (16, 32, 64, 128),
           lambda _, D: partial(ib.limits.solve_convolution, *signs(100, D), 3)),
    Growth("collapse", "(K, 10)", "K", (80, 160, 320, 640),
           lambda _, K: partial(ib.limits.solve_collapse, class_sizes=[10] * K)),
    Growth("distillation", "(n, 50)", "n", (8000, 32000, 128000, 512000),
           lambda _, n: _distillation(n, 50)),
    Growth("distillation", "(1000, D)", "D", (200, 400, 800, 1600),
           lambda _, D: _distillation(1000, D)),
    Growth("diagonal", "(n, 4 n)", "n", (100, 200, 400, 800), lambda _, n: _diagonal(n, 4 * n)),
    Growth("gated least squares", "(n, 10, 10)", "n", (4000, 16000, 64000, 256000),
           lambda _, n: _gated_ols(n, 10, 10)),
    Growth("gated least squares", "(2000, 10, H)", "H", (20, 40, 80, 160),
           lambda _, H: _gated_ols(2000, 10, H)),
    Growth("heads", "(n, 50, 10)", "n", (1000, 4000, 16000, 64000),
           lambda _, n: _heads(n, 50, 10)),
    Growth("one direction a class", "(n, 10)", "n", (500, 1000, 2000, 4000),
           lambda _, n: _orthosep(n, 10)),
)  # fmt: skip
