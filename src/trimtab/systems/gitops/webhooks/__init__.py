"""What Git servers tell of pushes: who sent it (signatures), what was pushed (pushes), whether it came before (deliveries)."""
