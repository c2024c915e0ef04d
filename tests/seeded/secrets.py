"""Secrets that a command shows, or takes where other users of the machine read them."""

from __future__ import annotations

import re

from tests.seeded.base import Bug, always, of
from tests.seeded.holes import Hole

PLANTED = "tests/unit/lockstep/test_planted_secrets.py"
BY_FORM = "tests/unit/lockstep/config/test_secrets.py"
REFUSED = "test_a_command_line_with_a_secret_is_refused_and_the_secret_is_not_repeated"
EARLIER_NAMES = re.compile(
    r"passw(or)?d|passphrase|secret|credential|(^|[._-])key[._-]pem$|(^|[._-])(api|access|account)[._-]?key"
    r"|jaas|oauthbearer\.(config|extensions)|(^|[._-])token$|(^|[._-])custom[._-]headers$"
    r"|(^|[._-])authorization$|(^|[._-])cookie$",
    re.IGNORECASE,
)

BUGS = (
    Bug(
        "quotes_go_with_a_secret",
        "A secret in JSON is replaced with its quotes, and what is left is JSON no more.",
        Hole.SECRETS,
        {"lockstep.config.secrets:_unquoted": lambda _right: lambda text: text},
        of("tests/unit/lockstep/config/test_secrets.py", "test_json_without_its_secrets_is_json"),
    ),
    Bug(
        "a_secret_is_recognized_by_its_name_alone",
        "A private key or a password within a value is shown, if the property's name does not tell.",
        Hole.SECRETS,
        {"lockstep.config.secrets:_WITHIN": lambda _right: ()},
        of(PLANTED, "test_migrate_shows_no_secret_of_another_sink")
        + of(BY_FORM, "test_a_secret_is_recognized_by_its_value"),
    ),
    Bug(
        "names_of_few_systems_are_secrets",
        "Shared access signatures, account keys and keystores of neighbours are shown.",
        Hole.SECRETS,
        {"lockstep.config.secrets:_NAME": lambda _right: EARLIER_NAMES},
        of(PLANTED, "test_migrate_shows_no_secret_of_another_sink"),
    ),
    Bug(
        "a_command_line_takes_the_address_of_a_hook",
        "The path of a webhook, by which anybody may post there, is in the process list.",
        Hole.SECRETS,
        {"lockstep.config.sources:_is_secret_setting": always(False)},
        of(PLANTED, f"{REFUSED}[hooks.webhook]"),
    ),
    Bug(
        "a_command_line_takes_headers",
        "A header whose name does not tell that it is a secret is in the process list.",
        Hole.SECRETS,
        {"lockstep.config.sources:_HEADERS": lambda _right: ""},
        of(PLANTED, f"{REFUSED}[hooks.webhook_headers.X-Any]"),
    ),
)
