"""A node that runs pods as processes of this machine. What it does and does not do is in node.py."""

from gryvia_devcluster.node.context import Settings
from gryvia_devcluster.node.node import Node

__all__ = ["Node", "Settings"]
