"""The playground: Highwater in a browser (`.ci/playground`)."""
