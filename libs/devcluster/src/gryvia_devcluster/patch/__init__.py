"""How a write changes an object: the four patch types and the ownership of fields, as pure functions.

Inputs are never changed; every result is a fresh copy. Refusals are ApiError in the real server's words.
"""

from gryvia_devcluster.patch.apply import apply_patch
from gryvia_devcluster.patch.ownership import track_update
from gryvia_devcluster.patch.rfc import json_patch, merge_patch
from gryvia_devcluster.patch.strategic import strategic_merge_patch

__all__ = ["apply_patch", "json_patch", "merge_patch", "strategic_merge_patch", "track_update"]
