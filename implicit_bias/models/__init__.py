"""The table of models: the room of each, which is loaded when the model is asked for."""

from ..runs.model import Models

MODELS = Models(
    {
        "attention": "attention",
        "collapse": "collapse",
        "convolution": "convolution",
        "deep-linear": "linear",
        "dgn": "dgn",
        "diagonal": "diagonal",
        "distillation": "distillation",
        "dlgn": "dlgn",
        "fixed-outer": "fixed_outer",
        "frelu": "relu",
        "gdln": "gdln",
        "gln": "gln",
        "gln-l2": "gln",
        "heads": "heads",
        "linear": "linear",
        "next-token": "next_token",
        "orthosep": "orthosep",
        "relu": "relu",
        "shallow-gln": "gln",
    },
    package=__name__,
)
