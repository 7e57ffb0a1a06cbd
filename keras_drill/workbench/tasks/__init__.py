"""What can be trained: one folder for all that differs from task to task."""
