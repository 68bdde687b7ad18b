"""`python -m standby.hosts.scripted SCRIPT.toml`: run a scripted provider until it is interrupted."""

import argparse
import signal
import sys
import threading
from collections.abc import Sequence

from standby.events.errors import BadScript
from standby.hosts.scripted.script import load
from standby.hosts.scripted.server import ScriptedProvider


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve a script and print where; exit status 2 when script or address cannot be used."""
    parser = argparse.ArgumentParser(
        prog="python -m standby.hosts.scripted",
        description="A provider that replies by script (OpenAI and Anthropic wire formats).",
    )
    parser.add_argument("script", metavar="SCRIPT.toml")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=0, help="port to listen on (default: a free one)")
    parser.add_argument("--log", metavar="FILE", help="append each request as a JSON line before replying")
    options = parser.parse_args(arguments)
    try:
        server = ScriptedProvider(
            load(options.script), host=options.host, port=options.port, log_path=options.log
        ).start()
    except (BadScript, OSError) as fault:
        print(f"error: {fault}", file=sys.stderr)
        return 2
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    # One URL a line: whoever starts this reads them from the pipe.
    print(f"base_url {server.base_url}")
    print(f"requests {server.root_url}/_requests", flush=True)
    stopped.wait()
    server.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
