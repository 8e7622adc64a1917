"""The tape: layouts, entries, plans, and the compiled path that records."""
