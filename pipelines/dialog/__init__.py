"""Pipeline from a corpus to a served dialog model."""
