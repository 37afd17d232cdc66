"""The form of a module's scores: which program, if any, its limit is of."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from torch import Tensor

from .dependence import Dependence, InputDependence, measure_dependence, measure_inputs
from .fixed_outer import FixedOuterForm, find_fixed_outer
from .homogeneity import Homogeneity, measure_homogeneity
from .layers import LayeredForm, find_layers, find_relu_layers, picks_features
from .subject import SAME, SAMPLES, Subject, Weights, misfit
from .units import UnitsForm, find_units

# Misfit of slopes and difference quotients from which on they are of two functions.
_OTHER_GRADIENTS = 1e-3


class Form(Enum):
    """Forms of scores in the weights, each with what theory says of its limit."""

    FEATURES = "linear in its weights: fixed features of each sample"
    LINEAR = "a product of linear layers"
    UNCONSTRAINED = "features that are weights, one vector a sample, below one linear layer"
    UNITS = "units with fixed gates below linear layers"
    LAYERS = "layers with fixed gates between them"
    CONVOLUTION = "a full-width linear convolution below a linear layer"
    DEEP_CONVOLUTION = "several full-width linear convolutions below a linear layer"
    QUADRATIC = "a quadratic form in its weights, behind fixed gates"
    POLYNOMIAL = "a homogeneous polynomial in its weights, behind fixed gates"
    TWO_LAYER_RELU = "a two-layer ReLU network"
    FIXED_OUTER = "a two-layer ReLU network whose outer layer is fixed"
    DEEP_RELU = "a ReLU network of several hidden layers"
    PIECEWISE = "a network whose weights move its gates"
    HOMOGENEOUS = "a network of a form that is not recognised"
    NOT_HOMOGENEOUS = "not homogeneous in its weights"
    SURROGATE = "a network whose gradients are not those of its scores: a backward is a surrogate"


@dataclass(frozen=True)
class Structure:
    """The form of a module's scores, with the measurements that it rests on.

    All of it is measured: identities at random weights, on the samples and their gates.

    Attributes
    ----------
    subject : Subject
        What it is of: without the parameters in `still`, if there are any.
    still : tuple of str
        Parameters that are said to be trained and that no gradient moves, such as hard gates.
    form : Form
    homogeneity : Homogeneity
    dependence : Dependence
        Not measured, of no parameter, where scores have no degree: it would decide nothing.
    inputs : InputDependence
    units : UnitsForm or None
        Of the forms LINEAR and UNITS.
    layers : LayeredForm or None
        Of LAYERS, TWO_LAYER_RELU and DEEP_RELU.
    outer : FixedOuterForm or None
        Of FIXED_OUTER.
    circles : tuple of int
        Sizes of the circles that kernels are moved round, of the forms with a CONVOLUTION.
    """

    subject: Subject
    still: tuple[str, ...]
    form: Form
    homogeneity: Homogeneity
    dependence: Dependence
    inputs: InputDependence
    units: UnitsForm | None = None
    layers: LayeredForm | None = None
    circles: tuple[int, ...] = ()
    outer: FixedOuterForm | None = None


def recognise(subject: Subject) -> Structure:
    """Recognise the form of a module's scores, from their values alone.

    Parameters
    ----------
    subject : Subject

    Returns
    -------
    Structure

    Raises
    ------
    ValueError
        If no gradient moves any of its weights.
    """
    still = subject.without_gradient()
    if len(still) == len(subject.weights):
        raise ValueError(
            f"no gradient moves a weight of `network` ({subject.name}): its scores do not depend "
            "on them, or `forward` cuts them off by `.data`, `.detach()` or `no_grad`"
        )
    if still:
        subject = subject.frozen(still)
    homogeneity = measure_homogeneity(subject)
    form = _scaling_form(subject, homogeneity)
    if form is not None:
        dependence = Dependence(None, MappingProxyType({}), (), ())
        return Structure(subject, still, form, homogeneity, dependence, InputDependence.OTHER)
    dependence = measure_dependence(subject, homogeneity)
    form, units, layers = _form(subject, dependence)
    circles: tuple[int, ...] = ()
    if form in (Form.QUADRATIC, Form.POLYNOMIAL) and subject.n_outputs == 1:
        circles = _circles(subject)
        deep = Form.CONVOLUTION if form is Form.QUADRATIC else Form.DEEP_CONVOLUTION
        form = deep if circles else form
    outer = None
    if form is Form.PIECEWISE and homogeneity.whole_degree == 1:
        outer = find_fixed_outer(subject)
        form = form if outer is None else Form.FIXED_OUTER
    inputs = measure_inputs(subject)
    return Structure(
        subject, still, form, homogeneity, dependence, inputs, units, layers, circles, outer
    )


def _scaling_form(subject: Subject, homogeneity: Homogeneity) -> Form | None:
    """Return the form of scores with no degree, or with others' gradients; None of all others."""
    if subject.few_of_many().gradient_error() > _OTHER_GRADIENTS:
        return Form.SURROGATE
    return Form.NOT_HOMOGENEOUS if homogeneity.whole_degree is None else None


def _form(
    subject: Subject, dependence: Dependence
) -> tuple[Form, UnitsForm | None, LayeredForm | None]:
    if subject.by_sample and dependence.degree == 1:
        return Form.FEATURES, None, None
    if picks_features(subject):
        return Form.UNCONSTRAINED, None, None
    if not subject.by_sample:
        return Form.HOMOGENEOUS, None, None
    if subject.n_outputs > 1:
        moving = dependence.degree is None
        return (_moving(dependence, None) if moving else Form.POLYNOMIAL), None, None
    if dependence.degree is None:
        relu = find_relu_layers(subject) if dependence.piecewise else None
        return _moving(dependence, relu), None, relu
    units = find_units(subject)
    if units is not None:
        return Form.LINEAR if units.is_shared else Form.UNITS, units, None
    layers = find_layers(subject)
    if layers is not None:
        return Form.LAYERS, None, layers
    return (Form.POLYNOMIAL if dependence.degree != 2 else Form.QUADRATIC), None, None


def _circles(subject: Subject) -> tuple[int, ...]:
    """Return the sizes of the circles round which every kernel is moved over all places of others.

    Then it is the same to move the one by a place or another, to the same side or the opposite.
    Empty where some parameter is no kernel as wide as the others, or the scores see the places.
    """
    few, kernels = subject.few(SAMPLES), list(subject.weights.values())
    shapes = [tuple(size for size in p.shape if size > 1) for p in kernels]
    sizes = max(shapes, key=len)
    if len(kernels) < 2 or not sizes or len({p.numel() for p in kernels}) > 1:
        return ()
    if any(shape not in (sizes, (kernels[0].numel(),)) for shape in shapes):
        return ()
    first, *others = subject.weights

    def moved(w: Weights, name: str, axis: int, by: int) -> dict[str, Tensor]:
        return {**w, name: w[name].reshape(sizes).roll(by, axis).view_as(w[name])}

    def alike(axis: int, other: str) -> bool:
        return any(
            all(
                misfit(few.scores(moved(w, first, axis, 1)), few.scores(moved(w, other, axis, by)))
                <= SAME
                for w in few.points()
            )
            for by in (1, -1)
        )

    every = (alike(axis, other) for axis in range(len(sizes)) for other in others)
    return sizes if all(every) else ()


def _moving(dependence: Dependence, relu: LayeredForm | None) -> Form:
    """Name the form of homogeneous scores whose gates the weights move."""
    if relu is not None:
        return Form.TWO_LAYER_RELU if relu.n_layers == 2 else Form.DEEP_RELU
    return Form.HOMOGENEOUS if dependence.others else Form.PIECEWISE
