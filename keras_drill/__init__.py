"""Output layers for neural language generation, on Keras 3."""
