"""The task of translation."""
