"""Where an Azure storage account answers, by its address. Pure.

It has two endpoints. Hadoop's connector asks `account.dfs.…`; Python, the table lock, and what must be there
whole or not at all ask `account.blob.…`, of the same account and with the same files. A server of one's own
has both at one address, the account as the first part of a path, as Microsoft's emulator has it.
"""

from __future__ import annotations

from table.errors import Refused
from table.store.objects.settings import ObjectSettings

DFS, BLOB = ".dfs.", ".blob."


def account_of(authority: str) -> str:
    """Of `container@account.dfs.core.windows.net`."""
    return authority.partition("@")[2].partition(".")[0]


def blob_root(authority: str, settings: ObjectSettings) -> str:
    """The account's Blob endpoint, with the account in it, and no `/` at its end. Raises `Refused`."""
    if settings.endpoint:
        return f"{settings.endpoint.rstrip('/')}/{account_of(authority)}"
    host = authority.partition("@")[2]
    if DFS not in host:
        raise Refused(
            f"abfss://{authority}: {host} is no host of a storage account: write it whole, such as "
            "account.dfs.core.windows.net"
        )
    return f"https://{host.replace(DFS, BLOB, 1)}"
