"""What is true at a position of a log, as a plain value for JSON and as text for people."""

from typing import Any

import msgspec

from standby.engine.decide.profiles import manages_itself
from standby.engine.texts.status import held_sticky, status_of
from standby.engine.turn import Turn
from standby.engine.view import View
from standby.hosts.cli.output import Out, local_time, span
from standby.hosts.cli.reading import Names
from standby.projections.health import Health, documented_stats, enforced
from standby.projections.sessions import Session


def state_of(view: View, names: Names, now_ms: int, session: str | None = None) -> dict[str, Any]:
    """Everything that a log says is true at a moment; with `session` (an alias) of this session alone."""
    sessions = [session] if session is not None else sorted(view.sessions.keys_now(), key=names.session)
    return {
        "at_ms": now_ms,
        "head": {"position": view.position, "hash": view.hash.hex()},
        "policy": _policy(view),
        "sessions": [session_of(view, names, alias, now_ms) for alias in sessions],
        "profiles": [
            _profile(view, names, alias, view.profiles[alias], now_ms)
            for alias in sorted(view.profiles, key=names.of)
        ],
        "unfinished": _unfinished(view, names, sessions),
    }


def _policy(view: View) -> dict[str, Any]:
    policy = view.policy()
    return {
        "adopted_at": view.policy_at,
        "ruleset": policy.ruleset,
        "logic": policy.logic,
        "primary": policy.models.primary,
        "fallbacks": list(policy.models.fallbacks or ()),
        "operator_rows": len(policy.rows),
        "agents": sorted(policy.agents),
    }


def _agent_of(view: View, names: Names, alias: str, session: Session) -> str:
    name = names.get(alias)
    if name is not None and "/" in name:
        return name.partition("/")[0]
    turn = view.turns.get(session.turn) if session.turn else None
    return turn.request.agent if turn is not None and turn.request is not None else "main"


def session_of(view: View, names: Names, alias: str, now_ms: int) -> dict[str, Any]:
    """What is true of one session: selection, active fallback with its cause, stickiness, pins."""
    session = view.sessions.get(alias) or Session()
    # LIVE-5, STICK-6: the selected model stays named, the fallback and its cause stand beside it.
    status = status_of(view, alias, _agent_of(view, names, alias, session), now_ms)
    sticky = held_sticky(view, session, status.selected, now_ms)
    return {
        "session": names.session(alias),
        "alias": alias,
        "selected": status.selected,
        "source": status.source if status.selected else None,
        "strict": status.strict,
        "override": session.model,
        "active_fallback": {"model": status.active, "reason": status.reason} if status.active else None,
        "sticky": None
        if sticky is None
        else {
            "model": sticky.model,
            "first_ms": sticky.first_ms,
            "until_ms": sticky.until_ms,
            "runtime": sticky.runtime,
        },
        "pins": [
            {
                "provider": provider,
                "profile": names.of(pin.profile),
                "by": "user" if pin.user else "automatic",
                "displaced": pin.displaced,
            }
            for provider, pin in sorted(session.pins.items())
        ],
        "passed_over": [
            {"model": mark.model, "profile": names.of(mark.profile), "until_ms": mark.until_ms}
            for mark in session.markers
            if mark.until_ms > now_ms and view.local(mark.runtime, mark.epoch)
        ],
        "last_turn": session.turn,
    }


def _profile(view: View, names: Names, alias: str, health: Health, now_ms: int) -> dict[str, Any]:
    observed = health.observed
    return {
        "profile": names.of(alias),
        "alias": alias,
        "provider": observed.provider if observed is not None else "",
        "kind": observed.kind if observed is not None else None,
        "there": observed is not None,
        "usable": observed is not None and observed.usable,
        "expires_ms": observed.expires_ms if observed is not None else None,
        "last_used_ms": health.last_used_ms or None,
        "usage_stats": documented_stats(health, now_ms, manages_itself(view, health)),
        "blocks": [
            {
                "model": entry.model,
                "reason": entry.reason,
                "kind": entry.kind,
                "until_ms": entry.until_ms,
                "evidence_ms": entry.evidence_ms,
                "ours": entry.ours,
            }
            for entry in sorted(
                enforced(health, manages_itself(view, health)), key=lambda entry: entry.until_ms
            )
            if entry.until_ms > now_ms
        ],
    }


def _unfinished(view: View, names: Names, sessions: list[str]) -> list[dict[str, Any]]:
    found: list[tuple[int, str, Turn]] = []
    for key in view.turns.keys_now():
        turn = view.turns.get(key)
        if turn is None or turn.request is None or turn.state in ("answered", "failed"):
            continue
        if turn.request.session in sessions:
            found.append((turn.requested_ms, key, turn))
    return [
        {
            "turn": key,
            "session": names.session(turn.request.session) if turn.request else "",
            "state": turn.state,
            "model": turn.attempts[-1].model if turn.attempts else "",
            "attempt": turn.attempt,
            "requested_ms": requested,
            "until_ms": turn.until_ms,
            "runtime": turn.runtime,
        }
        for requested, key, turn in sorted(found, key=lambda one: one[:2])
    ]


# ---- for people ----------------------------------------------------------------------------------------


def print_state(out: Out, state: dict[str, Any], now_ms: int) -> None:
    """The value of `state_of` as text."""
    plain = msgspec.to_builtins(state)
    head, policy = plain["head"], plain["policy"]
    chain = " -> ".join([policy["primary"] or "(no primary)", *policy["fallbacks"]])
    adopted = f"adopted at position {policy['adopted_at']}" if policy["adopted_at"] else "none adopted yet"
    out.line("head      ", f"{head['position']}:{head['hash']}")
    out.line("policy    ", f"ruleset {policy['ruleset']}, logic {policy['logic']}, {adopted}")
    out.line("chain     ", chain)
    out.line()
    out.title("Sessions" if plain["sessions"] else "No sessions yet")
    for session in plain["sessions"]:
        print_session(out, session, now_ms)
    out.line()
    out.title("Profiles" if plain["profiles"] else "No profiles observed yet")
    for profile in plain["profiles"]:
        _print_profile(out, profile, now_ms)
    out.line()
    out.title("Unfinished turns" if plain["unfinished"] else "No unfinished turns")
    rows = [
        (
            turn["turn"],
            turn["session"],
            turn["state"] + (f" until {local_time(turn['until_ms'])}" if turn["until_ms"] else ""),
            f"attempt {turn['attempt']}" + (f" {turn['model']}" if turn["model"] else ""),
            f"since {local_time(turn['requested_ms'])}",
        )
        for turn in plain["unfinished"]
    ]
    if rows:
        out.table(rows)


def print_session(out: Out, session: dict[str, Any], now_ms: int) -> None:
    """The value of `session_of` as text."""
    session = msgspec.to_builtins(session)
    strict = ", strict: no fallback" if session["strict"] else ""
    chosen = f" ({session['source']}{strict})" if session["source"] else ""
    out.line("  ", (session["session"], "cyan"))
    out.line("    selected  ", session["selected"] or "nothing selects a model", chosen)
    fallback = session["active_fallback"]
    if fallback is not None:
        why = f" because of {fallback['reason']}" if fallback["reason"] else ""
        out.line("    active    ", (f"fallback {fallback['model']}{why}", "yellow"))
    sticky = session["sticky"]
    if sticky is not None:
        left = span(sticky["until_ms"] - now_ms)
        out.line("    sticky    ", f"{sticky['model']} until {local_time(sticky['until_ms'])} ({left} left)")
    for pin in session["pins"]:
        moved = ", moved here by a rate limit" if pin["displaced"] else ""
        out.line("    pin       ", f"{pin['provider']}: {pin['profile']} (by {pin['by']}{moved})")
    for mark in session["passed_over"]:
        out.line(
            "    passes    ", f"{mark['model']} with {mark['profile']} until {local_time(mark['until_ms'])}"
        )


def _credential(profile: dict[str, Any]) -> str:
    """What is known of a profile's credential; whether it may be used now is for its blocks to say."""
    words = []
    if profile["there"]:
        words.append(f"{profile['provider']} {profile['kind']}")
    if profile["profile"] == profile["alias"]:
        words.append("its name was erased")
    if not profile["there"]:
        words.append("no credential any more")
    else:
        words.append("credential present" if profile["usable"] else "credential present, but not usable")
    if profile["expires_ms"]:
        words.append(f"expires {local_time(profile['expires_ms'])}")
    return ", ".join(words)


def _print_profile(out: Out, profile: dict[str, Any], now_ms: int) -> None:
    out.line("  ", (profile["profile"], "cyan"), f"  {_credential(profile)}")
    if profile["last_used_ms"]:
        out.line("    last used ", local_time(profile["last_used_ms"]))
    for block in profile["blocks"]:
        scope = block["model"] or "all models"
        ours = ", our own" if block["ours"] else ""
        out.line(
            "    blocked   ",
            (f"{scope} until {local_time(block['until_ms'])}", "red"),
            f" ({span(block['until_ms'] - now_ms)} left): {block['reason']} {block['kind']}{ours}",
        )
    stats = profile["usage_stats"]
    if "errorCount" in stats:
        failed = f", last failure {local_time(stats['lastFailureAt'])}" if "lastFailureAt" in stats else ""
        out.line("    errors    ", f"{stats['errorCount']}{failed}")
