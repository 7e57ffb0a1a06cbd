"""The components of the pipelines. They work with every task."""
