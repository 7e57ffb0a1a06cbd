"""What every page is made of, whatever it is about: elements, plots, numbers, and the frame."""
