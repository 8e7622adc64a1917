"""What `python -m tapegrad` does: a network learns digits, its gradient is checked, its learning is drawn."""
