"""What drives a query's dataflow: in this process, or on Spark."""
