"""The types of steps: each a function from an attempt to what it wants done next."""
