"""The tasks that can be trained, one folder for each."""
