"""Workers: they take messages from the queue and do what costs time. As many as wanted, on any machine."""
