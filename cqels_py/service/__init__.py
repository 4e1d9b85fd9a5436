"""The service: streams, queries and their results over HTTP, in one process, with all that it keeps in one folder."""
