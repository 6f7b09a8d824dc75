"""How replicas of the hub talk to each other: one order of messages for all of them."""
