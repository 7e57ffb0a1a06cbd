"""The engine: runs components in order, stores artifacts by fingerprint, and records executions.

The engine does not depend on any particular component.
"""
