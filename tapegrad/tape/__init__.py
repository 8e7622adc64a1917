"""The tape: layouts, entries and their nodes, versions, views and hooks."""
