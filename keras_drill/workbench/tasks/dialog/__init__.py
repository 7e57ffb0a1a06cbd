"""Dialog: a response answers the turns before it."""
