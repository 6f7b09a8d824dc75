"""The certificates of webhooks, made and rotated: `keeper` first, `rotation` is the state machine."""

from trimtab.runtime.certificates.keeper import Certificates
from trimtab.runtime.certificates.publish import Targets
from trimtab.runtime.certificates.rotation import Lives

__all__ = ["Certificates", "Lives", "Targets"]
