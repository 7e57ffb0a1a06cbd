"""Pipeline from a corpus to a served language model."""
