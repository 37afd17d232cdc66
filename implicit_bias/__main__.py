"""The commands that the package installs, and `python -m implicit_bias compare ...`."""

import contextlib
import sys
from collections.abc import Iterator

from ._support.extras import MissingExtra, naming_extras
from ._support.interrupts import leave_at_once

BAD_INPUT = 2


def main() -> None:
    """Run the command `implicit-bias`."""
    leave_at_once()
    with _missing_packages_reported():
        from .cli import main as command

        command()


def compare_main() -> None:
    """Run the command `compare`, which is also installed by that name alone."""
    leave_at_once()
    with _missing_packages_reported():
        from .cli import compare

        compare(prog_name="compare")


@contextlib.contextmanager
def _missing_packages_reported() -> Iterator[None]:
    """Exit with one message where a package is missing or hidden."""
    try:
        with naming_extras():
            yield
    except ImportError as error:
        if not isinstance(error, MissingExtra) and error.name != "solvers":
            raise
        print(f"Error: {error}", file=sys.stderr)
        raise SystemExit(BAD_INPUT) from None


if __name__ == "__main__":
    main()
