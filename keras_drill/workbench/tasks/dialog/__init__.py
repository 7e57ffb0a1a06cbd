"""Dialog: models that respond to the previous turns."""
