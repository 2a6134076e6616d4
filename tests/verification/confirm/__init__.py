"""Acting scripted scenarios out on real brokers, one after the other (``make confirm``)."""
