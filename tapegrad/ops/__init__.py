"""The ops, and functions made of them.

A function says itself under which names it is public (see `tapegrad.ops.table.public`). A file is imported when one of
its names is first used (see `tapegrad.ops.table.loading`), or when another file imports it.
"""
