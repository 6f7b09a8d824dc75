"""What an image says of itself: its config, and its layers with the commands that made them. Pure.

History is for people and is often not there, too short or too long. Layers and diff IDs decide; a command is given to a
layer only where history and layers agree in number, or as far as history goes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from trimtab.systems.images.registry.manifests import BadManifest, ImageManifest, Platform, platform_of
from trimtab.systems.images.registry.references import is_digest

LONGEST_COMMAND = 4096
MOST_HISTORY = 4096
MOST_LABELS = 512
LONGEST_LABEL = 4096


class ImageConfig(msgspec.Struct, frozen=True):
    """`commands` are those of the history that made a layer, in order."""

    platform: Platform | None
    diff_ids: tuple[str, ...]
    commands: tuple[str, ...]
    created: str = ""
    labels: Mapping[str, str] = {}


class Layer(msgspec.Struct, frozen=True):
    """One layer of an image, from the bottom. `diff_id` is the digest of what it unpacks to; empty when it is not said."""

    media_type: str
    digest: str
    size: int
    diff_id: str = ""
    command: str = ""
    foreign: bool = False


def parse_config(content: bytes) -> ImageConfig:
    """BadManifest when it is no config. What is only for people is left out where it is not readable."""
    try:
        raw = msgspec.json.decode(content, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        raise BadManifest("the config is no JSON object") from None
    rootfs, inner = raw.get("rootfs"), raw.get("config")
    diff_ids = rootfs.get("diff_ids") if isinstance(rootfs, dict) else None
    labels = inner.get("Labels") if isinstance(inner, dict) else None
    created = raw.get("created")
    return ImageConfig(
        platform=platform_of(raw),
        diff_ids=tuple(each if isinstance(each, str) and is_digest(each) else "" for each in _list(diff_ids)),
        commands=tuple(
            str(step.get("created_by") or "")[:LONGEST_COMMAND]
            for step in _list(raw.get("history"))[:MOST_HISTORY]
            if isinstance(step, dict) and not step.get("empty_layer")
        ),
        created=created[:64] if isinstance(created, str) else "",
        labels={
            str(name): str(value)[:LONGEST_LABEL]
            for name, value in list(labels.items() if isinstance(labels, dict) else ())[:MOST_LABELS]
        },
    )


def layers_of(manifest: ImageManifest, config: ImageConfig) -> tuple[Layer, ...]:
    """Each layer with its diff ID and its command, where they are told. More history than layers tells nothing."""
    diff_ids = config.diff_ids if len(config.diff_ids) == len(manifest.layers) else ()
    commands = config.commands if len(config.commands) <= len(manifest.layers) else ()
    return tuple(
        Layer(
            layer.media_type,
            layer.digest,
            layer.size,
            diff_ids[number] if diff_ids else "",
            commands[number] if number < len(commands) else "",
            layer.foreign,
        )
        for number, layer in enumerate(manifest.layers)
    )


def _list(raw: Any) -> list[Any]:
    return raw if isinstance(raw, list) else []
