"""What a custom resource's structural schema does to an object: pruning, defaulting and validation, as pure
functions."""

from gryvia_devcluster.schema.check import check_structural
from gryvia_devcluster.schema.structural import Structural

__all__ = ["Structural", "check_structural"]
