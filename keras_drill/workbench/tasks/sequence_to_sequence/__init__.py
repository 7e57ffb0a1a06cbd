"""What translation, dialog and other tasks of answering a source have in common."""
