"""Predictions of the implicit bias of gradient descent, certified and compared with training.

The names here are what a first script needs. The rest stands in namespaces that are modules of
their own: `datasets`, `gates`, `networks`, `protocols` (what is given), `limits`, `programs`,
`kernels`, `distillation`, `heads` (what theory predicts), `measures`, `dynamics`, `equivalence`
(how a network compares), `estimators`, `optim`, `sweeps`, `autoencoders`. Names are imported when
they are first used, so that `import implicit_bias` stays instant.
"""

import logging

from ._support.lazy import lazy_names

logging.getLogger(__name__).addHandler(logging.NullHandler())

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
