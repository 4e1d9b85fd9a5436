"""The Spark runner: the same dataflow in the partitions of a Structured Streaming query. Nothing else imports pyspark.

rows ─ routing (each task: parse, encode, choose partitions) ─ shuffle ─ stage (dataflow over its state) ─ result rows
                                                                           │               ├ hot (copies in memory)
                                                                           │               └ store (snapshots and a log)
                                                                           └ exchange ─ to the next stage of the plan
"""
