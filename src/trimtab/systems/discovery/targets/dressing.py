"""How a device looks as a Target: its name, labels and annotations by the rule's templates, and how to reach it."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import UNSET

from trimtab.model.names import label_value_problems
from trimtab.systems.discovery.kinds import TargetSpec, UsedReferences
from trimtab.systems.discovery.kinds.vendor import UNKNOWN
from trimtab.systems.discovery.settings import Offer, Settings
from trimtab.systems.discovery.targets.devices import Device
from trimtab.systems.discovery.targets.naming import label_value, target_name
from trimtab.systems.discovery.targets.settle import Made
from trimtab.systems.discovery.targets.templates import RuleNames, TemplateFailed, render


class Dresser:
    """For one rule. `complain` hears of templates that give nothing useful for a device."""

    def __init__(self, settings: Settings, complain: Callable[[str, str], None]) -> None:
        rule = settings.rule
        self._settings, self._complain = settings, complain
        self._template = rule.spec.target_template
        self._names = RuleNames(rule.name, rule.namespace, dict(rule.metadata.labels or {}))

    def name(self, device: Device) -> str:
        """A valid name, by the template, the host name or the address, in this order."""
        info, address = device.primary.identified.info, device.primary.address
        template = self._template.name_template if self._template else UNSET
        if template:
            text = self._rendered("nameTemplate", template, device).strip()
            if text:
                return target_name(text, address)
            self._complain("EmptyName", f"nameTemplate gives an empty name for {address}: it is named by its address")
            return target_name("", address)
        return target_name(info.hostname or "", address)

    def make(self, device: Device, name: str) -> Made:
        info, address = device.primary.identified.info, device.primary.address
        offer = self._offer(info.protocol or "", info.provider or "")
        spec = TargetSpec(provider=info.provider or UNKNOWN, address=address)
        if offer is not None:
            entry = offer.connection
            spec = spec.replace(
                credentials=entry.credentials,
                tls_secret=entry.tls_secret,
                connection_profile=entry.connection_profile,
                sync_profile=entry.sync_profile,
            )
        else:
            self._complain(
                "NoConnectionProfile",
                f"none of targetConnectionProfiles is for {info.protocol or 'this'} and vendor {spec.provider}, as for "
                f"{address}: such Targets name no credentials",
            )
        return Made(
            spec=spec,
            labels=self._labels(device),
            annotations=self._annotations(device),
            used=offer.used if offer is not None else UsedReferences(),
        )

    def _offer(self, protocol: str, provider: str) -> Offer | None:
        """The first whose protocol and vendor match. What was not probed has no protocol."""
        for offer in self._settings.offers:
            fits = not protocol or offer.protocol == protocol
            if fits and (not offer.connection.vendor or offer.connection.vendor == provider):
                return offer
        return None

    def _labels(self, device: Device) -> dict[str, str]:
        found = {}
        for key, template in ((self._template.labels if self._template else UNSET) or {}).items():
            text = self._rendered(f"labels[{key}]", template, device)
            found[key] = text if not label_value_problems(text) else label_value(text)
        return found

    def _annotations(self, device: Device) -> dict[str, str]:
        templates = (self._template.annotations if self._template else UNSET) or {}
        return {key: self._rendered(f"annotations[{key}]", template, device) for key, template in templates.items()}

    def _rendered(self, field: str, template: str, device: Device) -> str:
        try:
            return render(template, device.primary.identified.info, device.primary.address, self._names)
        except TemplateFailed as error:
            self._complain("TemplateFailed", f"targetTemplate.{field} for {device.primary.address}: {error}")
            return ""
