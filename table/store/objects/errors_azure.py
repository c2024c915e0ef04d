"""What Hadoop's connector for Azure says no with, as a sentence of ours. Pure.

Source: AbfsRestOperationException of hadoop-azure 3.3.4, whose answers to HEAD have no code but the server's
words, and Microsoft's list of Blob storage's error codes.
"""

from __future__ import annotations

import re

from table.store.objects.errors import PERMISSIONS, Act, RequestAnswer, told

_FAILED = re.compile(r'Operation failed: "([^"]*)", (\d{3}), [A-Z]+, [^,]*(?:, (\w+))?')
_TOKEN = re.compile(r"AADToken|AzureADAuthenticator|no credentials could be had")
_CODES = {
    "failed to authenticate": "AuthenticationFailed",
    "using this permission": "AuthorizationPermissionMismatch",
    "container does not exist": "ContainerNotFound",
    "filesystem does not exist": "ContainerNotFound",
}
"""What the server says with an answer that has no code -> its code."""
_SAME = {"FilesystemNotFound": "ContainerNotFound"}
_TOLD = frozenset({"AuthenticationFailed", "ContainerNotFound"})


def said_by_abfs(message: str) -> str:
    """Of a Java exception's message; empty where it is no refusal, or says more than we would."""
    if _TOKEN.search(message):
        return (
            "Azure gave no token for these credentials: see whether storage.tenant, storage.client_id and "
            "the secret, or the machine's identity, are those that were meant"
        )
    found = _FAILED.search(message)
    if found is None:
        return ""
    status, code = int(found[2]), found[3] or ""
    if not code:
        code = next((one for words, one in _CODES.items() if words in found[1]), "")
    code = _SAME.get(code, code)
    if status == 403 and code not in _TOLD:
        needed = ", ".join(dict.fromkeys(PERMISSIONS["abfss"].values()))
        return (
            f"the store does not let these credentials do this ({f'403 {code}'.strip()}): a role must allow "
            f"{needed}, or the credentials are not those that were meant"
        )
    if status not in (401, 403) and code not in _TOLD:
        return ""
    answer = RequestAnswer(status=status, code=code)
    error = told(answer, Act.PUT, scheme="abfss", bucket="of the table", place="")
    return str(error.strerror)
