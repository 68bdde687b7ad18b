"""Small faults in the engine, and whether a test sees them: `python -m tests.mutants`.

A rule that can be taken away without a failing test is not held. So this package applies one small fault at a
time to a copy of the tree (a comparison turned, a decision left out, a number changed by one), runs the tests
that hold the rules of that place, and reports the faults that nobody saw.

    places      where a fault can be, and which rules that place is about
    operators   which faults there are
    trees       the copies in which the tests run, and how a run ends
    witness     the pytest plugin inside such a run: the tests of the rules first, and which test failed
    explained   faults that no test can see, each with its reason
"""
