from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from mrcr_action.config import RunConfig
from mrcr_action.errors import UsageError
from mrcr_action.server.engine import Mount
from mrcr_action.server.own import OwnContainer
from mrcr_action.server.sibling import plan_of

if TYPE_CHECKING:
    from pathlib import Path

    from mrcr_action.server.engine import Plan

MOUNTED = Mount(source="/srv/runner/repo", target="/github/workspace")
WORKSPACE = replace(MOUNTED, read_only=True)
OWN = OwnContainer(
    id="f" * 64,
    image="action:1",
    image_id="sha256:e",
    mounts=(
        MOUNTED,
        Mount(source="/srv/runner/temp", target="/github/runner_temp"),
        Mount(source="/srv/runner/commands", target="/github/file_commands"),
        Mount(source="/var/run/docker.sock", target="/var/run/docker.sock"),
        Mount(source="/mnt/models", target="/models", read_only=True),
    ),
    image_environment={"VLLM_USAGE_SOURCE": "production-docker-image", "NCCL_VERSION": "2.27"},
)


def planned(
    *,
    own: OwnContainer | None = OWN,
    environ: dict[str, str] | None = None,
    folder: str = "/github/workspace",
    api_key: str | None = None,
    **keys: Any,
) -> Plan:
    named = {"model_name": "org/M", **({} if own else {"image": "org/vllm:1"}), **keys}
    return plan_of(
        RunConfig(**named),
        port=8123,
        own=own,
        environ=environ or {},
        labels={"a": "b"},
        api_key=api_key,
        folder=folder,
    )


def test_beside_this_container_the_server_shares_its_network_and_nothing_is_published() -> None:
    plan = planned(server_args="--max-model-len 8192 --api-key k", trust_remote_code=True)

    assert plan.command == (
        *("vllm", "serve", "org/M", "--max-model-len", "8192", "--trust-remote-code"),
        *("--disable-uvicorn-access-log", "--host", "127.0.0.1", "--port", "8123"),
    )
    assert (plan.image, plan.network, plan.published) == ("sha256:e", f"container:{OWN.id}", None)
    assert (plan.gpus, plan.shm_size, plan.labels) == ("all", "16g", {"a": "b"})


def test_outside_of_containers_the_servers_port_is_published() -> None:
    plan = planned(own=None, folder="/home/me/work")

    assert (plan.image, plan.network, plan.published) == ("org/vllm:1", None, 8123)
    assert plan.command[-4:] == ("--host", "0.0.0.0", "--port", "8123")  # noqa: S104


def test_without_an_image_outside_of_containers_there_is_nothing_to_start() -> None:
    with pytest.raises(UsageError, match="no image is named"):
        planned(own=None, image=None)


def test_two_servers_never_share_a_name() -> None:
    assert planned().name != planned().name


def test_a_server_gets_what_it_needs_of_the_environment_and_no_secret_of_the_job() -> None:
    passed = {
        "HF_TOKEN": "h",
        "HF_ENDPOINT": "https://hub",
        "HTTPS_PROXY": "http://proxy:1",
        "no_proxy": "localhost",
        "VLLM_LOGGING_LEVEL": "DEBUG",
        "NCCL_P2P_DISABLE": "1",
    }
    kept = {
        "GITHUB_TOKEN": "g",
        "ACTIONS_RUNTIME_TOKEN": "a",
        "INPUT_API-KEY": "i",
        "MRCR_API_KEY": "m",
        "AWS_SECRET_ACCESS_KEY": "s",
        "PATH": "/opt/mrcr/bin",
        "HOME": "/github/home",
        "LD_LIBRARY_PATH": "/x",
        "HF_HUB_OFFLINE": "",
        # What this image says of itself is no setting of the job's.
        "VLLM_USAGE_SOURCE": "production-docker-image",
        "NCCL_VERSION": "2.27",
    }

    plan = planned(environ={**passed, **kept}, api_key="key", env={"A": 1, "NCCL_P2P_DISABLE": 0})

    assert plan.environment == {
        "NO_COLOR": "1",
        **passed,
        "A": "1",
        "NCCL_P2P_DISABLE": "0",
        "VLLM_API_KEY": "key",
    }


def test_a_setting_of_the_job_goes_over_the_images_own() -> None:
    plan = planned(environ={"VLLM_USAGE_SOURCE": "ci"})

    assert plan.environment["VLLM_USAGE_SOURCE"] == "ci"


def test_a_server_without_gpus_is_given_none_by_a_runtime_that_gives_them_unasked() -> None:
    assert planned(gpus="none").environment["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert "NVIDIA_VISIBLE_DEVICES" not in planned(gpus="0").environment


def test_caches_lie_in_the_folder_of_the_host_unless_the_configuration_says_where() -> None:
    plan = planned(cache_dir="/data/cache", env={"HF_HOME": "/mine"})

    ((source, target),) = plan.made_folders.items()
    assert source == "/data/cache"
    inside = {
        name: plan.environment[name]
        for name in ("VLLM_CACHE_ROOT", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
    }
    assert len(set(inside.values())) == 3
    assert all(path.startswith(f"{target}/") for path in inside.values())
    assert plan.environment["HF_HOME"] == "/mine"
    assert "VLLM_CACHE_ROOT" not in planned().environment


def test_of_this_container_only_the_workspace_is_shared_and_read_only() -> None:
    plan = planned(folder="/github/workspace/sub")

    assert plan.mounts == (WORKSPACE,)
    assert plan.working_folder == "/github/workspace/sub"


@pytest.mark.parametrize(
    ("model", "mount"),
    [
        ("org/M", None),
        ("./models/m", None),
        ("/github/workspace/models/m", None),
        ("/models/m", Mount(source="/mnt/models/m", target="/models/m", read_only=True)),
        ("/data/m/", Mount(source="/data/m", target="/data/m", read_only=True)),
        (
            "/models/hub/models--org--M/snapshots/abc",
            Mount(
                source="/mnt/models/hub/models--org--M",
                target="/models/hub/models--org--M",
                read_only=True,
            ),
        ),
    ],
)
def test_a_models_folder_is_at_its_own_place_read_only(model: str, mount: Mount | None) -> None:
    assert planned(model_name=model).mounts == (WORKSPACE, *([mount] if mount else []))


def test_a_model_in_this_image_is_there_in_the_server_of_the_same_image(tmp_path: Path) -> None:
    model = str(tmp_path)

    assert planned(model_name=model).mounts == (WORKSPACE,)
    assert planned(model_name=model).copied_folders == ()


def test_a_model_in_this_image_is_copied_into_the_server_of_another(tmp_path: Path) -> None:
    plan = planned(model_name=str(tmp_path), image="org/x")
    assert (plan.mounts, plan.copied_folders) == ((WORKSPACE,), (str(tmp_path),))

    # One that is not here is on the runner's machine.
    absent = planned(model_name="/data/model", image="org/x")
    as_on_the_host = Mount(source="/data/model", target="/data/model", read_only=True)
    assert (absent.mounts, absent.copied_folders) == ((WORKSPACE, as_on_the_host), ())
    # Outside of containers, every folder is the machine's own.
    assert planned(own=None, model_name=str(tmp_path)).copied_folders == ()


@pytest.mark.parametrize("folder", ["/", "/usr/local/bin", "/etc", "/dev/shm"])
def test_a_folder_that_every_image_has_is_not_covered_up(folder: str) -> None:
    plan = planned(own=None, folder=folder)

    assert (plan.mounts, plan.working_folder) == ((), None)


def test_a_working_folder_that_is_in_no_mount_is_left_to_the_image() -> None:
    plan = planned(folder="/vllm-workspace")

    assert (plan.mounts, plan.working_folder) == ((), None)
