"""Objects in memory: versions, history, selectors, and the optional file behind them."""

from gryvia_devcluster.store.entry import Entry, Key
from gryvia_devcluster.store.log import Change, Cursor
from gryvia_devcluster.store.memory import Store
from gryvia_devcluster.store.persistence import DamagedState, StateFile
from gryvia_devcluster.store.selectors import FieldSelector, LabelSelector

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
