"""Credentials from Secrets, renewed by watch and never shown: `resolver` first."""

from trimtab.runtime.credentials.resolver import (
    CredentialError,
    Credentials,
    KeyMissing,
    Malformed,
    SecretNotFound,
    SecretRef,
)

__all__ = ["CredentialError", "Credentials", "KeyMissing", "Malformed", "SecretNotFound", "SecretRef"]
