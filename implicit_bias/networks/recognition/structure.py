"""The form of a module's scores: which program, if any, its limit is of."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from torch import Tensor

from .dependence import Dependence, InputDependence, measure_dependence, measure_inputs
from .homogeneity import Homogeneity, measure_homogeneity
from .layers import LayeredForm, find_layers, find_relu_layers
from .subject import SAME, SAMPLES, Subject, Weights, misfit
from .units import UnitsForm, find_units

# Misfit of slopes and difference quotients from which on they are of two functions.
_OTHER_GRADIENTS = 1e-3


class Form(Enum):
    """Forms of scores in the weights, each with what theory says of its limit."""

    FEATURES = "linear in its weights: fixed features of each sample"
    LINEAR = "a product of linear layers"
    UNITS = "units with fixed gates below linear layers"
    LAYERS = "layers with fixed gates between them"
    CONVOLUTION = "a full-width linear convolution below a linear layer"
    QUADRATIC = "a quadratic form in its weights, behind fixed gates"
    POLYNOMIAL = "a homogeneous polynomial in its weights, behind fixed gates"
    TWO_LAYER_RELU = "a two-layer ReLU network"
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
    """

    subject: Subject
    still: tuple[str, ...]
    form: Form
    homogeneity: Homogeneity
    dependence: Dependence
    inputs: InputDependence
    units: UnitsForm | None = None
    layers: LayeredForm | None = None


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
    return Structure(
        subject, still, form, homogeneity, dependence, measure_inputs(subject), units, layers
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
    if subject.n_outputs > 1 or not subject.by_sample:
        return Form.HOMOGENEOUS, None, None
    if dependence.degree is None:
        relu = find_relu_layers(subject) if dependence.piecewise else None
        return _moving(dependence, relu), None, relu
    units = find_units(subject)
    if units is not None:
        return Form.LINEAR if units.is_shared else Form.UNITS, units, None
    layers = find_layers(subject)
    if layers is not None:
        return Form.LAYERS, None, layers
    if dependence.degree != 2:
        return Form.POLYNOMIAL, None, None
    return (Form.CONVOLUTION if _convolves(subject) else Form.QUADRATIC), None, None


def _convolves(subject: Subject) -> bool:
    """Return whether one of two parameters is moved over all places of the other, end to end.

    Then it is the same to move the one by a place or the other, to the same side or the opposite.
    """
    sizes = [p.numel() for p in subject.weights.values()]
    if len(sizes) != 2 or sizes[0] != sizes[1]:
        return False
    few = subject.few(SAMPLES)
    first, second = subject.weights

    def moved(w: Weights, name: str, by: int) -> dict[str, Tensor]:
        return {**w, name: w[name].flatten().roll(by).view_as(w[name])}

    return any(
        all(
            misfit(few.scores(moved(w, first, 1)), few.scores(moved(w, second, by))) <= SAME
            for w in few.points()
        )
        for by in (1, -1)
    )


def _moving(dependence: Dependence, relu: LayeredForm | None) -> Form:
    """Name the form of homogeneous scores whose gates the weights move."""
    if relu is not None:
        return Form.TWO_LAYER_RELU if relu.n_layers == 2 else Form.DEEP_RELU
    return Form.HOMOGENEOUS if dependence.others else Form.PIECEWISE
