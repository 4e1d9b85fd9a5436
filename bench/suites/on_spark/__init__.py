"""What the Spark suite measures, a module for each question."""
