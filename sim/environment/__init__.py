"""What hosts run on: links, disks, and elision of exchanges while nothing changes."""
