"""Language models: a text is continued."""
