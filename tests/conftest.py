"""What is collected here."""


def pytest_ignore_collect(collection_path, config):
    """Leaves helpers out of the search for examples: some change their process when imported."""
    if collection_path.suffix == ".py" and not collection_path.name.startswith("test_"):
        return True
    return None
