"""The settings of a real cluster: properties files, output of Kafka's tools, and the defaults of Kafka's releases."""
