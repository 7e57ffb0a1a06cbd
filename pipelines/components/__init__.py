"""The components, which know the idea of a task and never a certain one."""
