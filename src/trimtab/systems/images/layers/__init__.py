"""Layers of images: read as a stream, verified, what they bring and take away, and what an image holds in the end."""
