"""The application: trains models from the command line, evaluates, reports and serves them."""
