"""Pipeline from a corpus to a served translation model."""
