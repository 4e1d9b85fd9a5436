"""The Spark runner: the same dataflow in the partitions of a Structured Streaming query. Nothing else imports pyspark.

rows ─ routing (each task: parse, encode, choose parts) ─ shuffle by part ─ stage (dataflow over its state) ─ result rows
                                                              │               ├ hot (left for other workers of the host)
                                                              │               └ store (snapshots and a log of inputs)
                                                              └ exchange ─ from one stage of the plan to the next
"""
