"""Many seeds: on this machine's processes or on Spark, and the folder that they leave."""
