"""What people type that is not Python: a side building, on which nothing leans."""
