"""A Docker engine of its own: private socket, private data, a network that nothing else uses."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

START_SECONDS = 60
STOP_SECONDS = 30
"""Bounds against a hang."""

MOUNTS = Path("/proc/self/mountinfo")

HOOK = "nvidia-container-runtime-hook"
"""The engine accepts device requests for GPUs if a program of this name is on its PATH, which it
looks for once, when it starts; it calls it for each container that asks for one."""


def docker_client() -> str:
    """A ``docker`` that can build with the legacy builder and with BuildKit.

    Clients before 23 hold BuildKit's part; later ones need the plugin buildx.
    """
    found = [shutil.which("docker", path=path) for path in ("/usr/bin", os.environ["PATH"])]
    for client in dict.fromkeys(filter(None, found)):
        version = _output(client, "version", "--format", "{{.Client.Version}}")
        if int(version.partition(".")[0] or 0) < 23 or _output(client, "buildx", "version"):
            return client
    raise AssertionError(
        f"no docker client that has BuildKit (looked at {found}); install docker-buildx"
    )


def _output(*command: str) -> str:
    """What a command prints on stdout, whether or not it succeeds."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip()


class Engine:
    """A ``dockerd`` that runs for as long as the block lasts.

    It leaves the machine's firewall and the networks of other engines alone: it has a bridge of
    its own and no rules, so its containers reach this machine and nothing beyond.
    """

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="mrcr-engine-"))
        self.socket = self.folder / "docker.sock"
        self.log = self.folder / "dockerd.log"
        self.client = docker_client()
        self.gateway = ""
        """This machine's address, as the containers see it."""
        self._bridge = f"mrcr{os.getpid():x}"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"unix://{self.socket}"

    def __enter__(self) -> Self:
        try:
            self._connect()
            self._start(gpus=True)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        _output("ip", "link", "delete", self._bridge)
        # The engine leaves a namespace mounted, and more if it was killed; a folder that holds a
        # mount cannot be removed.
        mounts = [line.split(" ")[4] for line in MOUNTS.read_text().splitlines()]
        for mount in reversed(mounts):
            if Path(mount).is_relative_to(self.folder):
                _output("umount", "--lazy", mount)
        shutil.rmtree(self.folder)

    @contextlib.contextmanager
    def without_gpus(self) -> Iterator[None]:
        """The same engine, with its images, on a machine that lacks the NVIDIA toolkit."""
        self._stop()
        self._start(gpus=False)
        try:
            yield
        finally:
            self._stop()
            self._start(gpus=True)

    def docker(
        self, *arguments: str | Path, env: Mapping[str, str] | None = None, check: bool = True
    ) -> str:
        """Run the client; returns what it prints, without the newline at the end."""
        done = subprocess.run(
            [self.client, *arguments],
            env={**self.environment, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        said = f"docker {' '.join(map(str, arguments))}: {done.stdout}{done.stderr}"
        assert not check or done.returncode == 0, said
        return done.stdout.rstrip("\n")

    @property
    def environment(self) -> dict[str, str]:
        """What a client of this engine is started with."""
        foreign = ("DOCKER_", "BUILDKIT_", "BUILDX_")
        kept = {key: value for key, value in os.environ.items() if not key.startswith(foreign)}
        # Settings of the user's own client, such as proxies, are not for these containers.
        return {**kept, "DOCKER_HOST": self.url, "DOCKER_CONFIG": str(self.folder / "config")}

    def containers(self) -> list[str]:
        """Names of all containers there are, running or not."""
        return self.docker("ps", "--all", "--format", "{{.Names}}").split()

    def _connect(self) -> None:
        """Make the bridge, with a range of addresses that this machine does not use."""
        taken = [
            ipaddress.ip_interface(word).network
            for line in _output("ip", "-4", "-oneline", "address").splitlines()
            for word in line.split()
            if "/" in word
        ]
        network = next(
            network
            for number in range(256)
            if not any(
                (network := ipaddress.IPv4Network(f"10.213.{number}.0/24")).overlaps(other)
                for other in taken
            )
        )
        self.gateway = str(network[1])
        for command in (
            ("link", "add", "name", self._bridge, "type", "bridge"),
            ("address", "add", f"{self.gateway}/24", "dev", self._bridge),
            ("link", "set", self._bridge, "up"),
        ):
            subprocess.run(["ip", *command], check=True)  # noqa: S607 - wherever it is

    def _start(self, *, gpus: bool) -> None:
        hooks = self.folder / "hooks"
        hooks.mkdir(exist_ok=True)
        hook = hooks / HOOK
        hook.write_text("#!/bin/sh\nexit 0\n")
        hook.chmod(0o755)
        path = f"{hooks}:{os.environ['PATH']}" if gpus else os.environ["PATH"]
        options = {
            "data-root": self.folder / "data",
            "exec-root": self.folder / "exec",
            "pidfile": self.folder / "docker.pid",
            "host": self.url,
            "bridge": self._bridge,
            # Nothing is read of the settings of an engine of the system's own.
            "config-file": self.folder / "daemon.json",
            "iptables": "false",
            "ip6tables": "false",
            "ip-forward": "false",
            "ip-masq": "false",
        }
        (self.folder / "daemon.json").write_text("{}")
        (self.folder / "config").mkdir(exist_ok=True)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                # Should these tests be killed, the engine ends by itself.
                ["setpriv", "--pdeathsig", "TERM", "dockerd"]
                + [f"--{name}={value}" for name, value in options.items()],
                stdout=log,
                stderr=log,
                env={**os.environ, "PATH": path},
                start_new_session=True,
            )
        deadline = time.monotonic() + START_SECONDS
        while not self.docker("version", "--format", "{{.Server.Version}}", check=False):
            log_text = self.log.read_text(errors="replace")[-4000:]
            assert self._process.poll() is None, f"dockerd ended:\n{log_text}"
            assert time.monotonic() < deadline, f"dockerd is not ready:\n{log_text}"
            time.sleep(0.05)

    def _stop(self) -> None:
        """End it in good order, which ends its containers too; by force if it does not listen."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
