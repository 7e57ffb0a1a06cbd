"""The command line. Nothing heavy is imported before the arguments have been understood."""
