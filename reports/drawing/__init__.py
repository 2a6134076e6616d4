"""One run as a picture: messages, leaders and logs."""
