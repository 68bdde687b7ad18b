"""Simulation: a scenario file played on a virtual clock, without network or sleeping.

The engine, the store and the runner's driver are the real ones; only the shell that makes calls and lets time
pass is another. So a scenario is an example of a rule, a test of a policy, or a question about one.

    scenario    the file and what may stand in it
    outcomes    what a scripted call comes to
    play        the shell: turns interleaved on a virtual clock
    show        the story that is printed
"""

from standby.hosts.simulate.play import Played, play
from standby.hosts.simulate.scenario import Scenario, load_scenario

__all__ = ["Played", "Scenario", "load_scenario", "play"]
