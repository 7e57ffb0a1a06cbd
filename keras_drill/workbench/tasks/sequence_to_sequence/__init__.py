"""Common parts of encoder–decoder tasks: translation, dialog and autoencoders."""
