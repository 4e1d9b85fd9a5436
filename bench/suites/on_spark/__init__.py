"""The measurements of the Spark suite, a module for each question."""
