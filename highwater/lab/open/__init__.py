"""A local web page over the results of a folder: sweeps, hunts, reviews, audits, reports, films and recorded runs."""
