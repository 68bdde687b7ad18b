"""The specification and the programs that read it; not part of the wheel (`make specs`)."""
