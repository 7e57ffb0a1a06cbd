"""Common parts of all pages: elements, plots, number formats, and the frame of the page."""
