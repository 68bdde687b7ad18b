"""`python -m standby` is the command `standby`."""

from standby.hosts.cli import main

if __name__ == "__main__":
    main()
