"""Doing it: the runner, providers over HTTP, credentials, settings and the command line."""
