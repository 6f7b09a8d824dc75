"""What the hub has read and need not read again, on one replica or on many."""
