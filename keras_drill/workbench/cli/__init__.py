"""The command line. TensorFlow is imported only after the arguments were parsed and checked."""
