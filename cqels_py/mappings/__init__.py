"""Tables and JSON to elements: a CONSTRUCT whose variables are columns, evaluated column by column.

rows of a file ─ columns of terms ─ BIND and FILTER ─ template ─ elements
"""
