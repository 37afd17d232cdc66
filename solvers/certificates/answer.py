"""Base of certified answers: a status, a certificate, and a way to insist on both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any, ClassVar, Self

from ..numerics.checks import require_instance
from .status import Status


class NotCertified(RuntimeError):
    """Raised by `require()` where an answer is not as good as was asked for.

    Attributes
    ----------
    result : Answer
    """

    def __init__(self, result: Answer) -> None:
        require_instance("result", result, Answer)
        self.result = result
        remark = f" {result.remark[:1].upper()}{result.remark[1:]}." if result.remark else ""
        super().__init__(f"{result.status.name}: {result.advice}.{remark} [{_numbers(result)}]")

    def __reduce__(self) -> tuple[Any, ...]:
        # Made of the answer again: processes hand errors to each other.
        return type(self), (self.result,), self.__dict__


class Answer:
    """Base of dataclasses that hold an answer and what is proved of it.

    A subclass has the two fields below, and `tol` where its status depends on one.

    Attributes
    ----------
    ADVICE : mapping of Status to str
        Advice of the statuses that this kind of answer has words of its own for.
    status : Status
        What the certificate proves.
    certificate : dataclass of floats
        Recomputed from the arrays of the answer.
    """

    ADVICE: ClassVar[Mapping[Status, str]] = MappingProxyType({})

    status: Status
    certificate: Any

    @property
    def advice(self) -> str:
        """Meaning of the status for an answer of this kind, with the way out."""
        return self.ADVICE.get(self.status, self.status.advice)

    @property
    def remark(self) -> str:
        """Addition of this very answer to the advice; empty for most."""
        return ""

    def require(self) -> Self:
        """Return this answer if it is as was asked for.

        Raises
        ------
        NotCertified
            If the severity of its status is above 0, with the advice and the certificate.
        """
        if self.status.severity > 0:
            raise NotCertified(self)
        return self


def _numbers(result: Answer) -> str:
    """The numbers of the certificate, and how it was come by where the answer says so."""
    certificate = result.certificate
    found = [(f.name, f"{getattr(certificate, f.name):.3g}") for f in fields(certificate)]
    known = ((name, getattr(result, name, None)) for name in ("tol", "iterations", "solver"))
    found += [
        (name, f"{value:.3g}" if isinstance(value, float) else str(value))
        for name, value in known
        if value is not None
    ]
    return ", ".join(f"{name.replace('_', ' ')} {text}" for name, text in found)
