"""The simulated world: brokers, links, disks, clients and the checkers that watch them."""
