"""The op table: what an operation is, its families, and the gateway that all calls go through."""
