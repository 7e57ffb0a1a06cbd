"""The task of dialog models, which respond to the previous turns of a dialogue."""
