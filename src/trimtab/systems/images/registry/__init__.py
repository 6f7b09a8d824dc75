"""Registries that speak the OCI distribution protocol: what they hold, read and never written.

references   names: of a registry, a repository, a tag, an image
errors       what can go wrong, each as a sentence for a condition
challenges   how a registry asks for a login; auth, how it gets one; paging, how a list goes on
transport    requests with the login that is wanted; connections, what all clients share
client       one registry: ping, repositories, tags, manifests; blobs, what is large
manifests    what a manifest says, and what is in an index; configs, what an image says of itself
resolving    from a digest to the images behind it
listing      from a registry to all its images; outcomes, what comes of each tag
turns        whose tag is next; width, how many at once
"""
