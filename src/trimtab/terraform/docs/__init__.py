"""Pages about resources and data sources, made from the same definitions as they are: one a type, and one that maps all."""
