"""Papers as theorems name them: by authors and title, and in a few words by year and number."""

from __future__ import annotations

from typing import Final

FREI: Final = "Frei et al., Implicit bias in leaky ReLU networks trained on high-dimensional data"
GUNASEKAR: Final = (
    "Gunasekar et al., Implicit bias of gradient descent on linear convolutional networks"
)
JI: Final = "Ji and Telgarsky, Gradient descent aligns the layers of deep linear networks"
JI_2022: Final = "Ji et al., An unconstrained layer-peeled perspective on neural collapse"
LIPPL: Final = (
    "Lippl, Abbott and Chung, The implicit bias of gradient descent on generalized gated linear "
    "networks"
)
LYU: Final = "Lyu and Li, Gradient descent maximizes the margin of homogeneous neural networks"
PHUONG: Final = "Phuong, Underspecification in Deep Learning"
SOUDRY: Final = "Soudry et al., The implicit bias of gradient descent on separable data"

GUNASEKAR_2: Final = "Gunasekar et al. 2018, theorem 2"
JI_2019: Final = "Ji and Telgarsky 2019, gradient descent aligns the layers"
JI_2019_SPLIT: Final = "Ji and Telgarsky 2019 (arXiv 1803.07300)"
LIPPL_B8: Final = "Lippl, Abbott and Chung 2022, proposition B.8"
LYU_44: Final = "Lyu and Li 2020, theorem 4.4"
NO_LIMIT: Final = f"none names the limit; {LYU_44}: to some KKT point"
CAI_2025: Final = "Cai et al. 2025 (arXiv 2502.16075)"
KUNIN_2023: Final = "Kunin et al. 2023 (arXiv 2210.03820)"
THRAMPOULIDIS: Final = (
    "Thrampoulidis et al., Imbalance trouble: revisiting neural-collapse geometry"
)
THRAMPOULIDIS_2022: Final = "Thrampoulidis et al. 2022 (arXiv 2208.05512)"
TSILIVIS_2024: Final = "Tsilivis et al. 2024 (arXiv 2410.22069)"
TARZANAGH: Final = "Tarzanagh, Li, Thrampoulidis and Oymak 2023 (arXiv 2308.16898)"
SOUDRY_3: Final = "Soudry et al. 2018, theorem 3"
