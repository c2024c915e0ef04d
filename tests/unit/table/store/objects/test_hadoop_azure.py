"""What Hadoop's connector for Azure is told, from the settings that the Python side obeys."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from table.errors import Refused
from table.store.connectors import HadoopSettings, hadoop_settings, said_by_connectors, store_needs
from table.store.location import Location
from table.store.objects.azure import account_of, blob_root
from table.store.objects.settings import (
    AccountKey,
    ClientSecret,
    Credentials,
    FixedKeys,
    ManagedIdentity,
    ObjectSettings,
    ProviderChain,
)

HOST = "account.dfs.core.windows.net"
PATH = f"abfss://lake@{HOST}/events"
SECRET = "c2VjcmV0"
APP = ClientSecret(tenant="the-tenant", client_id="the-app", secret=SECRET)


def told(credentials: Credentials, endpoint: str = "") -> HadoopSettings:
    return hadoop_settings(Location.parse(PATH), ObjectSettings(endpoint=endpoint, credentials=credentials))


OF_ALL = {"fs.azure.readaheadqueue.depth", "fs.azure.always.use.https"}
"""What the connector looks for without an account's name."""


def of_account(settings: Mapping[str, str]) -> dict[str, str]:
    """The rest of it is of this account alone."""
    assert all(name.endswith(f".{HOST}") for name in settings.keys() - OF_ALL)
    return {name.removesuffix(f".{HOST}"): value for name, value in settings.items()}


def test_a_table_on_azure_wants_hadoops_connector_and_nothing_that_it_would_bring_along() -> None:
    needs = store_needs(PATH)
    assert needs.packages == needs.reading == ("org.apache.hadoop:hadoop-azure:3.3.4",)
    assert "com.google.guava:guava" in needs.excluded and not needs.classified


def test_an_accounts_key_is_among_what_is_secret_and_nowhere_else() -> None:
    found = told(AccountKey(SECRET))
    plain = of_account(found.plain)
    assert plain["fs.azure.account.auth.type"] == "SharedKey"
    assert plain["fs.azure.lockstep.blob.root"] == "https://account.blob.core.windows.net"
    assert "fs.azure.abfs.endpoint" not in plain, "Azure's own"
    assert of_account(found.secret) == {"fs.azure.account.key": SECRET}
    assert SECRET not in repr(found)


def test_nothing_is_read_ahead_since_this_version_mixes_up_what_it_has_read() -> None:
    assert told(AccountKey(SECRET)).plain["fs.azure.readaheadqueue.depth"] == "0"


def test_an_application_and_a_machine_ask_for_tokens_as_hadoop_does() -> None:
    app = told(APP)
    plain = of_account(app.plain)
    assert plain["fs.azure.account.auth.type"] == "OAuth"
    assert plain["fs.azure.account.oauth.provider.type"].endswith(".ClientCredsTokenProvider")
    assert plain["fs.azure.account.oauth2.client.endpoint"].endswith("/the-tenant/oauth2/token")
    assert plain["fs.azure.account.oauth2.client.id"] == "the-app"
    assert of_account(app.secret) == {"fs.azure.account.oauth2.client.secret": SECRET}
    machine = told(ManagedIdentity("the-identity"))
    plain = of_account(machine.plain)
    assert plain["fs.azure.account.oauth.provider.type"].endswith(".MsiTokenProvider")
    assert plain["fs.azure.account.oauth2.client.id"] == "the-identity" and not machine.secret


def test_a_server_of_ones_own_is_one_address_for_both_endpoints() -> None:
    plain = of_account(told(AccountKey(SECRET), "http://127.0.0.1:10000").plain)
    assert plain["fs.azure.abfs.endpoint"] == "127.0.0.1:10000"
    assert plain["fs.azure.always.use.https"] == "false"
    assert plain["fs.azure.lockstep.blob.root"] == "http://127.0.0.1:10000/account"
    plain = of_account(told(APP, "https://azure.example.org").plain)
    assert plain["fs.azure.abfs.endpoint"] == "azure.example.org:443"
    assert plain["fs.azure.always.use.https"] == "true"


def test_requests_that_fail_are_not_repeated_for_a_quarter_of_an_hour_unless_somebody_says_so() -> None:
    tuning = {one.asked: one for one in told(AccountKey(SECRET)).tuning}
    retries = tuning["fs.azure.io.retry.max.retries"]
    assert retries.name == retries.asked and int(retries.value) < 10


@pytest.mark.parametrize(
    ("credentials", "endpoint", "said"),
    [
        (ProviderChain(), "", "nothing that Hadoop's connector for Azure knows"),
        (FixedKeys("a", "b"), "", "nothing that Hadoop's connector for Azure knows"),
        (APP, "http://127.0.0.1:1", "sends tokens by https only"),
    ],
)
def test_what_hadoop_cannot_be_told_is_refused_on_azure(
    credentials: Credentials, endpoint: str, said: str
) -> None:
    with pytest.raises(Refused, match=said):
        told(credentials, endpoint)


def test_the_blobs_of_an_account_are_where_its_address_says() -> None:
    for host, root in {
        "account.dfs.core.chinacloudapi.cn": "https://account.blob.core.chinacloudapi.cn",
        "account.z07.dfs.storage.azure.net": "https://account.z07.blob.storage.azure.net",
    }.items():
        assert blob_root(f"lake@{host}", ObjectSettings()) == root
        assert account_of(f"lake@{host}") == "account"
    with pytest.raises(Refused, match="write it whole"):
        blob_root("lake@account", ObjectSettings())


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (
            'Operation failed: "Server failed to authenticate the request. Make sure", 403, HEAD, https://a/b?c',
            "the account's key is not the account's",
        ),
        (
            'Operation failed: "This request is not authorized.", 403, PUT, https://a/b?c, '
            'AuthorizationPermissionMismatch, "it is not"',
            "a role must allow Microsoft.Storage/storageAccounts/blobServices/containers/blobs/read",
        ),
        (
            'Operation failed: "The specified filesystem does not exist.", 404, HEAD, https://a/b',
            "no container",
        ),
        (
            'Operation failed: "404 ContainerNotFound", 404, PUT, abfss://a@b/c, ContainerNotFound',
            "there is no container",
        ),
        ("AADToken: HTTP connection to https://x failed for getting token from AzureAD", "gave no token"),
        ('Operation failed: "The specified path does not exist.", 404, HEAD, https://a/b', ""),
        ('Operation failed: "Busy", 503, PUT, https://a/b, ServerBusy, "later"', ""),
        ("something else", ""),
    ],
)
def test_what_hadoops_connector_says_no_with_is_told_in_our_words(message: str, said: str) -> None:
    told_so = said_by_connectors(f"java.io.IOException: {message}")
    assert said in told_so and bool(told_so) == bool(said)
    assert "https://a" not in told_so
