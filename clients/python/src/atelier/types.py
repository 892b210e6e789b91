"""The records of the interface, as dictionaries with known keys."""

from ._types import *  # noqa: F403
from ._types import __all__ as __all__
