"""One run as a picture: who said what to whom, who led, and what stood in the logs."""
