"""The command line: arguments → engine; the only place that prints.

`main` reads the arguments, `execution` drives the engine, `output`, `table` and `progress` show results,
`failures` turns errors into messages and exit statuses, `demo` knows the scenarios.
"""
