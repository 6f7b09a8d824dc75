"""The Envoy of this machine: how it is started, told, asked and ended."""
