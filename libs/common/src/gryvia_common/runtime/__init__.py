"""The controller runtime: services hand it pure decide functions, it does the reading, the writing and the waiting.

    decide(object, world, now) -> Plan

`plan`, `world` and `controller` are the vocabulary; everything else is the shell.
"""
