"""`standby demo`: a conversation that survives its providers, on two scripted ones over real HTTP.

play        the providers, the runner, the conversation
timeline    commits as lines, as they come into the log
stage       what is printed: for people, or JSON lines
*.toml      the settings, what the providers reply, what the user says
"""

from standby.hosts.demo.command import demo_command

__all__ = ["demo_command"]
