"""Parts that all pages share: elements, plots, formats of numbers, and the page's frame."""
