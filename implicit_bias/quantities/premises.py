"""What the theorems behind the models assume, as data: each assumption is declared once, here.

A model lists its theorem's (`Model.assumes`). Reports print all of them: what a run proves or
measures of one, by its name, stands in place of what is declared.
"""

from __future__ import annotations

from .._support.words import SteepestTrainer, words
from .assumptions import Premise

SEPARABLE = Premise(
    name="separable",
    text="the data are separable, by a network of this kind in these gates",
    known="proved",
)
HOMOGENEOUS = Premise(
    name="homogeneous",
    text="the network is homogeneous in its weights, of one degree in all contexts",
    known="by construction",
)
GATES = Premise(
    name="fixed gates",
    text="gates do not depend on the weights that are trained",
    known="by construction",
)
LOSS = Premise(
    name="exponential-like loss",
    text="the loss is exponential-like: it falls to 0, its derivative has a tight exponential tail "
    "and is Lipschitz (of the exponential loss only on margins that are bounded from below, as "
    "along a loss that does not rise)",
    known="by construction",
    needs={"loss": ("logistic", "exponential")},
)
SQUARED = Premise(name="squared loss", text="the loss is squared", known="by construction")
METHOD = Premise(
    name="gradient flow",
    text="training follows gradient flow, along gradients with steps small enough and without "
    "momentum",
    known="cannot be checked",
    needs={"trainer": ("constant", "normalised"), "momentum": (0, 0.0)},
)
FLOW = Premise(
    name="gradient flow",
    text="steps of gradient descent are small enough to follow gradient flow: the distance from it "
    "at the same time is measured",
    known="cannot be checked",
)
LINEAR_METHODS = Premise(
    name="step rule and size",
    text="steps are those of a theorem: along the gradient and small enough (Soudry et al.), "
    "along that of log(loss) at small rates (Ji and Telgarsky), or `dual` (Ji, Srebro and "
    "Telgarsky, for the exponential loss)",
    known="cannot be checked",
    needs={"trainer": ("constant", "normalised", "dual"), "momentum": (0, 0.0)},
)
STEEPEST = Premise(
    name="limit in the trainer's norm",
    text="a trainer that descends in another norm has the limit of that norm, which stands beside "
    "it: margins of linear predictors go to the largest (Fan, Schmidt and Thrampoulidis, of steps "
    "like t^(-1/2); of sizes measured in every step by a line of this project; Adam without its "
    "constant: Zhang, Zou and Cao; of Lion it is measured); of more layers directions "
    "go to KKT points in the layers' norms, for smooth networks and falling steps (Gronich and "
    "Vardi), and the program of the global optimum is this project's own",
    known="cannot be checked",
    where={"trainer": words(SteepestTrainer)},
)
FULL_BATCHES = Premise(
    name="full batches",
    text="every step sees all samples",
    known="by construction",
    needs={"batch_size": (0,)},
)
LOSS_TO_0 = Premise(
    name="loss to 0",
    text="the loss tends to 0",
    said="{text}: log(1/loss) is {reached:.3g} at the end",
    known="cannot be checked",
)
DIRECTION = Premise(
    name="weights converge in direction",
    text="the weights converge in direction",
    known="cannot be checked",
)
MARGINS = Premise(
    name="positive limit margins",
    text="the limit direction has a positive margin on every sample",
    said="{text}: the last weights have {smallest:.3g} at least",
    holds=lambda smallest: smallest > 0,
    known="measured",
)
GRADIENTS = Premise(
    name="gradients converge in direction",
    text="the gradients of the loss with respect to the predictor of each context converge in "
    "direction",
    known="cannot be checked",
)
PHASES = Premise(
    name="phases converge",
    text="the phases of the Fourier coefficients of the predictor end to end converge",
    known="cannot be checked",
)
SEPARATES = Premise(
    name="separates", text="the network separates the training data", known="measured"
)
DUAL_NORMS = Premise(
    name="dual norms at most 1",
    text="every unit has a dual norm of at most 1: without it units may be wrongly dead, and the "
    "end is a KKT point that is not the optimum",
    said="every unit of the network has a dual norm of at most 1, to a hundredth",
    known="measured",
)
START = Premise(
    name="a start below the loss of zero weights",
    text="the start has no larger loss than weights of 0, and is no saddle",
    said="the start has no larger loss than weights of 0: {begins:.6g} beside {at_zero:.6g}",
    known="measured",
    unless={"classes": ("joint",)},
)
SPAN = Premise(
    name="support vectors span",
    text="the support vectors span the inputs, as far as the samples do",
    said="support vectors span the samples: {rank} of {of} dimensions",
    holds=lambda rank, of: rank == of,
    known="measured",
    unless={"classes": ("joint",)},
)
ONE_LAYER = Premise(
    name="one hidden layer",
    text="there is one hidden layer: with more no theorem names the limit",
    said="there is one hidden layer, whose limit a theorem names; with more the program is a bound",
    how="",
    known="measured",
)
LOCAL_OPTIMUM = Premise(
    name="strict local optimum",
    text="the point next to the network is a strict local optimum, up to rotations of units",
    said="{text} (certified in floating point){why}",
    known="proved",
)

# Of attention, whose parameters may be K and Q.
KEY_QUERY = ("parameters", "key-query")
HEAD = Premise(
    name="fixed value head",
    text="one layer, whose value head is fixed: the scores of tokens are data",
    known="by construction",
)
FALLING = Premise(
    name="falling loss",
    text="the loss falls in the score of a sequence, with a slope that is bounded on its scores",
    known="by construction",
)
FEASIBLE = Premise(
    name="separable tokens",
    text="a matrix puts the selected tokens above those of lower scores",
    known="proved",
)
LOCAL = Premise(
    name="locally optimal tokens",
    text="no token that supports has a score as high as the selected one's: every better token has "
    "a margin above 1 in the solution",
    said="every better token has a margin above 1 in the solution: {margin:.4g} at least",
    holds=lambda margin: margin > 1,
    known="measured",
)
ATTENTION_START = Premise(
    name="start",
    text="the weights come into a cone around the direction: which tokens are selected depends on "
    "the start, and is seen after training alone",
    known="cannot be checked",
)
PATH = Premise(
    name="descent on K and Q",
    text="of K and Q the nuclear norm is proved for the regularisation path, and for gradient flow "
    "from starts that are aligned with the data: of descent from a small start it is observed",
    known="cannot be checked",
    where={KEY_QUERY[0]: KEY_QUERY[1:]},
)

PROPOSITION_B8 = (
    SEPARABLE, HOMOGENEOUS, GATES, LOSS, METHOD, STEEPEST, FULL_BATCHES, LOSS_TO_0,
    DIRECTION, MARGINS, GRADIENTS, DUAL_NORMS,
)  # fmt: skip
"""Those of proposition B.8 of Lippl, Abbott and Chung, and the last, which is left out there."""
OF_CONVOLUTIONS = (LOSS, METHOD, FULL_BATCHES, LOSS_TO_0, DIRECTION, GRADIENTS, PHASES)
"""Those of theorem 2 of Gunasekar et al. on full-width convolutions, but separable data."""
