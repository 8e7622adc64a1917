"""The sweep: find the entries that the roots reach, walk back over them, and release their residuals."""
