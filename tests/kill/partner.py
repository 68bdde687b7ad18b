"""A process that opens a log and runs a turn for each line that it gets: `python partner.py CONFIG`."""

import sys

import msgspec

from standby.events.errors import TurnFailed
from standby.hosts.credentials import CredentialStore
from standby.hosts.providers import endpoint
from standby.hosts.runner import Runner
from standby.hosts.service import open as open_service


def main(config: dict[str, str]) -> None:
    with (
        open_service(config["log"], config["policy"], instance=config["instance"]) as service,
        CredentialStore(config["keys"]) as keys,
        Runner(
            service,
            credentials=keys,
            environ={},
            endpoints={"openai": endpoint("openai", base_url=config["base_url"])},
        ) as runner,
    ):
        print("open", flush=True)
        for line in sys.stdin:
            try:
                said = runner.run(session=line.strip(), prompt="Hello?").text
            except TurnFailed as error:
                said = str(error)
            print(said, flush=True)


if __name__ == "__main__":
    main(msgspec.json.decode(sys.argv[1], type=dict[str, str]))
