"""What the platform costs, measured: `python -m bench [name]` or `make bench`. Not part of any service."""
