"""The HTML page of an execution."""
