"""Papers as theorems name them: by authors and title, and in a few words by year and number."""

from __future__ import annotations

from typing import Final

GUNASEKAR: Final = (
    "Gunasekar et al., Implicit bias of gradient descent on linear convolutional networks"
)
JI: Final = "Ji and Telgarsky, Gradient descent aligns the layers of deep linear networks"
LIPPL: Final = (
    "Lippl, Abbott and Chung, The implicit bias of gradient descent on generalized gated linear "
    "networks"
)
LYU: Final = "Lyu and Li, Gradient descent maximizes the margin of homogeneous neural networks"
PHUONG: Final = "Phuong, Underspecification in Deep Learning"
SOUDRY: Final = "Soudry et al., The implicit bias of gradient descent on separable data"

GUNASEKAR_2: Final = "Gunasekar et al. 2018, theorem 2"
JI_2019: Final = "Ji and Telgarsky 2019, gradient descent aligns the layers"
LIPPL_B8: Final = "Lippl, Abbott and Chung 2022, proposition B.8"
NO_LIMIT: Final = "none names the limit; Lyu and Li 2020, theorem 4.4: to some KKT point"
SOUDRY_3: Final = "Soudry et al. 2018, theorem 3"
