"""Common parts of all pages: HTML elements, plots, number formats, style and page frame."""
