"""Objects in memory: versions, history, selectors, and the optional file behind them."""

from gryvia_devcluster.store.entry import Entry, Key
from gryvia_devcluster.store.field_selector import FieldSelector
from gryvia_devcluster.store.label_selector import LabelSelector
from gryvia_devcluster.store.log import Change, Cursor
from gryvia_devcluster.store.memory import Store
from gryvia_devcluster.store.persistence import DamagedState, StateFile

__all__ = [
    "Change",
    "Cursor",
    "DamagedState",
    "Entry",
    "FieldSelector",
    "Key",
    "LabelSelector",
    "StateFile",
    "Store",
]
