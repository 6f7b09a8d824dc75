"""Being a plugin of Terraform's: the start, the first line, TLS, HTTP/2, gRPC and the end."""
