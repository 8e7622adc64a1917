"""Sparse derivatives: patterns from programs, colourings, and matrices of `scipy.sparse`."""
