"""Common parts of tasks with a source: translation, dialog and autoencoders."""
