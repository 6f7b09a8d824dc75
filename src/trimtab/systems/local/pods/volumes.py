"""The volumes of a pod as folders. A process has no file system of its own: it cannot see them at their `mountPath`.

Instead each container gets a variable for every volume that it mounts: `TRIMTAB_VOLUME_<NAME>`, with the name in capitals
and `_` for what is no letter or digit. It can be used in the pod's command: `--config=$(TRIMTAB_VOLUME_CONFIG)/app.yaml`.
Under podman they are mounted where the pod says.

ConfigMaps and Secrets are written when the pod starts, and again when one of its containers does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trimtab.client.protocol import Client
from trimtab.model.kubernetes import ConfigMap, Secret
from trimtab.systems.local.pods.environment import data_of, field_of
from trimtab.systems.local.pods.names import VOLUME
from trimtab.systems.local.pods.problem import CONFIG, CannotStart
from trimtab.systems.local.pods.records import Folder

Document = Mapping[str, Any]


async def filled(client: Client, pod: Document, folder: Folder, address: str) -> dict[str, Path]:
    """Every volume of the pod, and where it is now. CannotStart."""
    return {
        volume["name"]: await _filled(client, pod, volume, folder, address)
        for volume in pod["spec"].get("volumes") or ()
    }


def variables(container: Document, places: Mapping[str, Path]) -> dict[str, str]:
    """Where a container finds what it mounts."""
    mounts = container.get("volumeMounts") or ()
    return {variable(mount["name"]): str(place_of(mount, places)) for mount in mounts if mount["name"] in places}


def variable(volume: str) -> str:
    return VOLUME + re.sub(r"[^A-Z0-9]", "_", volume.upper())


def place_of(mount: Document, places: Mapping[str, Path]) -> Path:
    """A volume, or the part of it that is mounted. CannotStart for a part that is not in it."""
    place, part = places[mount["name"]], mount.get("subPath") or ""
    if ".." in Path(part).parts or part.startswith("/"):
        raise CannotStart(CONFIG, f'the subPath "{part[:100]}" leaves its volume')
    return place / part if part else place


async def _filled(client: Client, pod: Document, volume: Document, folder: Folder, address: str) -> Path:
    if volume.get("hostPath"):
        return Path(volume["hostPath"]["path"])
    place = folder.volume(volume["name"])
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    if volume.get("projected") is not None:
        sources = volume["projected"].get("sources") or ()
    else:
        sources = [{key: value for key, value in volume.items() if key != "name"}]
    for source in sources:
        for name, data in (await _files(client, pod, source, volume["name"], address)).items():
            _write(place, name, data)
    return place


async def _files(client: Client, pod: Document, source: Document, volume: str, address: str) -> dict[str, bytes]:
    """What one source of a volume has, by path."""
    namespace = pod["metadata"].get("namespace", "")
    for field, kind in (("configMap", ConfigMap), ("secret", Secret)):
        wanted = source.get(field)
        if wanted is not None:
            data = await data_of(client, kind, namespace, wanted)
            items = wanted.get("items")
            if items is None:
                return data
            absent = [item["key"] for item in items if item["key"] not in data]
            if absent and not wanted.get("optional"):
                raise CannotStart(CONFIG, f'volume "{volume}" wants keys that are not there: {", ".join(absent)}')
            return {item["path"]: data[item["key"]] for item in items if item["key"] in data}
    if source.get("downwardAPI") is not None:
        items = source["downwardAPI"].get("items") or ()
        return {
            item["path"]: field_of(pod, (item.get("fieldRef") or {}).get("fieldPath", ""), address).encode()
            for item in items
        }
    if "emptyDir" in source or not source:
        return {}
    raise CannotStart(
        "VolumeNotSupported",
        f'volume "{volume}" is of a sort that is not to be had here ({", ".join(source)}); there are emptyDir, configMap, '
        "secret, downwardAPI, projected and hostPath",
    )


def _write(place: Path, name: str, data: bytes) -> None:
    path = Path(name)
    if path.is_absolute() or ".." in path.parts:
        raise CannotStart(CONFIG, f'"{name[:100]}" leaves its volume')
    file = place / path
    new = place / ".new"  # a name may be as long as names can be: nothing fits beside it
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new.unlink(missing_ok=True)
        new.touch(mode=0o600)
        new.write_bytes(data)
        new.replace(file)
    except OSError as error:
        raise CannotStart(CONFIG, f'"{name[:100]}" cannot be written: {error.strerror}') from None
