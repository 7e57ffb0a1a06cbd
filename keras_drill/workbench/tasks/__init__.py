"""Tasks, the kinds of models that can be trained: one folder for each, and shared parts."""
