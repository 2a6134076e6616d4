"""Cases that are judged one by one: here, in several processes or on Spark, and once each, also after a stop."""
