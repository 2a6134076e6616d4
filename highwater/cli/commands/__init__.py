"""The commands, one module each; each offers `command`."""
