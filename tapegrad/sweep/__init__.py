"""The sweep: find what a cotangent reaches, go back over it, and release it."""
