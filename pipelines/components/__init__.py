"""The components of the pipelines. They work for all tasks."""
