"""The engine runs components in order, stores their artifacts, and records executions.

The engine does not depend on any particular component.
"""
