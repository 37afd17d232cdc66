"""Figures of Phuong's thesis, "Underspecification in Deep Learning" (2021), redone.

    python -m experiments.thesis surfaces
    python -m experiments.thesis exits --full --data-dir DIR

Chapters 3 (convolutions) and 5 have experiments of their own: `convolution`, `distillation`.
"""
