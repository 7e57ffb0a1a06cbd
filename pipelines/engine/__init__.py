"""The runner: components in order, artifacts by fingerprints, executions. It knows no component."""
