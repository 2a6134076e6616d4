"""The environment of hosts: links, disks, and elision of exchanges while nothing changes."""
