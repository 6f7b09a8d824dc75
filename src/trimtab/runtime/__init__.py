"""Controllers, and what they share. It knows the model and the client only, so that a controller runs anywhere."""
