"""The verbs of the command line, one module a topic; `__main__` puts them together."""
