"""What hosts stand on: links, disks, and what need not be simulated while nothing changes."""
