"""PROBE, closer: how much of the throttle is remembered."""

from standby.projections.runtimes import CHECKS_KEPT, Runtime, fold_check


def test_of_very_many_providers_the_one_that_was_checked_longest_ago_is_forgotten() -> None:
    runtime = Runtime(epoch=1)
    for number in range(256):
        fold_check(runtime, f"p{number}", 1_000 - number)
    assert (len(runtime.checks), CHECKS_KEPT) == (256, 256)
    fold_check(runtime, "newest", 2_000)
    assert len(runtime.checks) == 256
    assert "p255" not in runtime.checks
    assert {"p0", "p254", "newest"} <= set(runtime.checks)
