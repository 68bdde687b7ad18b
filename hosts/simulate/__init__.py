"""Simulation: a scenario file played on a virtual clock, without network or sleeping.

The engine, the store and the runner's driver are the real ones; only the shell that makes calls and lets time
pass is another. So a scenario is an example of a rule, a test of a policy, or a question about one.

    scenario    what may stand in the file
    reading     the file, read and checked
    play        the shell: turns interleaved on a virtual clock
    played      what came of it
    outcomes    what a scripted call comes to
    acts        what steps do besides requesting turns
    expect      what was played against what was expected
    words       the decisions as lines for people
"""

from standby.hosts.simulate.play import play
from standby.hosts.simulate.played import Played, PlayedTurn
from standby.hosts.simulate.reading import load_scenario, parse_scenario
from standby.hosts.simulate.scenario import Loaded, Scenario

__all__ = ["Loaded", "Played", "PlayedTurn", "Scenario", "load_scenario", "parse_scenario", "play"]
