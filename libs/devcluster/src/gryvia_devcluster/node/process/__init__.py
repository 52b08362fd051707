"""Processes of pods: a small launcher program beside the node, and the node's side of its socket."""
