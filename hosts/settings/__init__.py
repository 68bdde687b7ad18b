"""Settings: one TOML file with the documented key paths, and our own below `standby.`

    lines          where each key stands, for messages
    cells, keys    checks of single values; the table of all keys
    secrets        what must not be in such a file
    reading        from text to `Settings`
    checks         what must hold between settings
    environment    variables that the documents name

It loads no HTTP client.
"""

from standby.hosts.settings.environment import with_environment
from standby.hosts.settings.keys import KEYS, Key
from standby.hosts.settings.reading import load_settings, parse_settings, settings_within
from standby.hosts.settings.values import ProviderSettings, Settings

__all__ = [
    "KEYS",
    "Key",
    "ProviderSettings",
    "Settings",
    "load_settings",
    "parse_settings",
    "settings_within",
    "with_environment",
]
