"""What the server's container is made of: a configuration, and what is around this process."""

from __future__ import annotations

import os
import uuid
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from mrcr_action.errors import UsageError
from mrcr_action.server.engine.container import Mount, Plan
from mrcr_action.server.vllm import arguments_of, take_api_key, vllm_command

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mrcr_action.config import RunConfig
    from mrcr_action.server.own import OwnContainer

PASSED_ON = (
    *("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_ENDPOINT", "HF_HUB_OFFLINE"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
)
PASSED_PREFIXES = ("VLLM_", "NCCL_")
"""Variables of this process that the server gets. All others stay here: among them are the job's
own tokens, and the image may be anybody's."""

CACHE = "/var/cache/mrcr-action"
"""Where the container finds ``cache_dir``."""

CACHES = {
    "HF_HOME": f"{CACHE}/huggingface",
    "VLLM_CACHE_ROOT": f"{CACHE}/vllm",
    "TRITON_CACHE_DIR": f"{CACHE}/triton",
    "TORCHINDUCTOR_CACHE_DIR": f"{CACHE}/inductor",
}

SYSTEM_FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/proc", "/sys", "/dev")
"""Folders of an image that one of the host must not take the place of."""


def plan_of(
    config: RunConfig,
    *,
    port: int,
    own: OwnContainer | None,
    environ: Mapping[str, str],
    labels: Mapping[str, str],
    api_key: str | None,
    folder: str | None = None,
) -> Plan:
    """The container for a configuration.

    Inside a container, the server shares its network, so that it is at 127.0.0.1 of it and nowhere
    else; outside, its port is published at 127.0.0.1 of the machine.

    Args:
        config: names the model, the image and what the container gets.
        port: where the server will listen.
        own: the container around this process, if there is one.
        environ: environment of this process.
        labels: of the container.
        api_key: the key that the server will ask for.
        folder: working folder of this process; looked up without it.

    Raises:
        UsageError: no image is named, and there is none around this process.
    """
    folder = folder or str(Path.cwd())
    model = config.model_name or ""
    workspace = _workspace(folder, own)
    is_copied = _lies_only_here(model, config, own)
    model_mount = None if is_copied else _of_model(model, workspace, config, own)
    mounts = [mount for mount in (workspace, model_mount) if mount]
    arguments, _ = take_api_key(arguments_of(config))
    return Plan(
        name=f"mrcr-server-{uuid.uuid4().hex[:12]}",
        image=image_of(config, own),
        command=tuple(
            vllm_command(
                "vllm",
                model,
                port=port,
                host="127.0.0.1" if own else "0.0.0.0",  # noqa: S104 - its network is its own
                arguments=arguments,
                trust_remote_code=config.trust_remote_code,
            )
        ),
        environment=_environment(config, own, environ, api_key),
        labels=labels,
        network=f"container:{own.id}" if own else None,
        published=None if own else port,
        gpus=config.gpus,
        shm_size=config.shm_size,
        mounts=tuple(mounts),
        made_folders={config.cache_dir: CACHE} if config.cache_dir else {},
        copied_folders=(model,) if is_copied else (),
        working_folder=folder if workspace else None,
    )


def image_of(config: RunConfig, own: OwnContainer | None) -> str:
    """The image that the server is started from: the one named, or the one around this process.

    Raises:
        UsageError: there is neither.
    """
    if config.image is not None:
        return config.image
    if own is None:
        raise UsageError(
            "server container: no image is named, and this is no container of that engine's",
            hint="Pass --image IMAGE, an image with vLLM in it, such as vllm/vllm-openai:TAG.",
        )
    return own.image_id


def _environment(
    config: RunConfig, own: OwnContainer | None, environ: Mapping[str, str], api_key: str | None
) -> dict[str, str]:
    from_image = own.image_environment if own else {}
    passed = {
        name: value
        for name, value in environ.items()
        if (name in PASSED_ON or name.startswith(PASSED_PREFIXES))
        and value
        # What another image says of itself is not true of this one.
        and from_image.get(name) != value
    }
    return {
        "NO_COLOR": "1",
        **passed,
        **(CACHES if config.cache_dir else {}),
        # Where the runtime hands out GPUs unasked, an image's own variable would claim them all.
        **({"NVIDIA_VISIBLE_DEVICES": "void"} if config.gpus == "none" else {}),
        **{name: str(value) for name, value in config.env.items()},
        **({"VLLM_API_KEY": api_key} if api_key else {}),
    }


def _workspace(folder: str, own: OwnContainer | None) -> Mount | None:
    """The working folder at its own place, so that relative paths mean the same to the server.

    Read-only: a pull request may decide whose image it is, and later steps run what lies there.
    """
    if own is not None:
        around = own.covering(folder)
        return around and replace(around, read_only=True)
    parts = PurePosixPath(folder)
    if folder == "/" or any(parts.is_relative_to(system) for system in SYSTEM_FOLDERS):
        return None
    return Mount(source=folder, target=folder, read_only=True)


def _lies_only_here(model: str, config: RunConfig, own: OwnContainer | None) -> bool:
    """Whether a model's folder is one of this container's own, which no other image has."""
    return (
        own is not None
        and config.image is not None
        and model.startswith("/")
        and own.covering(model) is None
        and Path(model).is_dir()
    )


def _of_model(
    model: str, workspace: Mount | None, config: RunConfig, own: OwnContainer | None
) -> Mount | None:
    """A model's folder at its own place, read-only, if it is not there anyway."""
    if not model.startswith("/"):
        return None
    path = PurePosixPath(os.path.normpath(model))
    if workspace is not None and path.is_relative_to(workspace.target):
        return None
    if path.parent.name == "snapshots":
        # In a cache of the hub's library, the files are links to those of a folder beside it.
        path = path.parent.parent
    source = str(path)
    if own is not None:
        around = own.covering(source)
        if around is not None:
            source = str(PurePosixPath(around.source) / path.relative_to(around.target))
        elif config.image is None and Path(model).exists():
            return None  # it lies in the image itself
    return Mount(source=source, target=str(path), read_only=True)
