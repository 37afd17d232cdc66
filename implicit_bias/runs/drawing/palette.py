"""Colours of every picture: those of Okabe and Ito, which stay apart for colour-blind readers."""

from __future__ import annotations

BLACK, GREY = "#000000", "#999999"
BLUE, VERMILLION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY = "#E69F00", "#56B4E9"
# For lines that have no meaning of their own. The eighth, yellow, is lost on white: a violet.
SERIES = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK, "#7A5195")
# Samples of either class: of the hues of a map from red to blue, and bright enough to be told apart
# as small markers on white.
POSITIVE, NEGATIVE = "#1F6FD1", "#C8102E"
