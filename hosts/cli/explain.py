"""`standby explain TURN`: why this model answered, step by step, with the rules that say so."""

from typing import Annotated, Any

import typer

from standby.events.errors import BadInput
from standby.events.store import Store
from standby.hosts.cli.explanation import story_of
from standby.hosts.cli.labels import kept_text
from standby.hosts.cli.log import field_text
from standby.hosts.cli.options import AsJson, LogPath, open_log
from standby.hosts.cli.output import Out, clock_time, local_time, span
from standby.hosts.cli.reading import Names, find_turn, rows_of_turn
from standby.projections.history import History, TurnHistory

_INDENT = " " * 16


def history_of(store: Store, wanted: str) -> TurnHistory:
    """The history of the turn that a prefix or `last` names. Raises BadInput if there is no such turn."""
    turn, before = find_turn(store, wanted)
    history = History((turn,))
    for stored in rows_of_turn(store, turn, before):
        history.fold(stored.row.position, stored.commit)
    if turn not in history.turns:
        raise BadInput(f"turn {turn} has no commit that can be read")
    return history.turns[turn]


def explain_command(
    turn: Annotated[str, typer.Argument(help="A turn's id, an unambiguous beginning of it, or `last`.")],
    log: LogPath = None,
    as_json: AsJson = False,
) -> None:
    """Explain a turn: each attempt and skip with reason, row and rules; waits; what the user was told; why."""
    store = open_log(log)
    try:
        story = story_of(history_of(store, turn), Names(store))
    finally:
        store.close()
    out = Out()
    if as_json:
        out.json(story)
    else:
        _print(out, story)


def _print(out: Out, story: dict[str, Any]) -> None:
    out.line(("turn      ", "bold"), story["turn"], f"  (position {story['position']})")
    out.line(
        ("session   ", "bold"), f"{story['session']}, {story['kind']} turn on a {story['surface']} surface"
    )
    out.line(("requested ", "bold"), f"{local_time(story['requested_ms'])} by runtime {story['runtime']}")
    strict = ", strict: no other model may answer" if story["strict"] else ""
    out.line(("selected  ", "bold"), f"{story['selected']} (source: {story['source']}{strict})")
    chain = " -> ".join(f"{one['model']} ({one['origin']})" for one in story["chain"])
    out.line(("chain     ", "bold"), chain, (f"  [{' '.join(story['chain_rules'])}]", "dim"))
    out.line()
    for step in story["steps"]:
        _print_step(out, step)
    out.line()
    _print_end(out, story)
    if story["rules"]:
        out.line()
        out.title("Rules")
        out.table([(rule, words) for rule, words in story["rules"].items()])
    out.line()
    out.line(("Why  ", "bold"), story["why"])


def _print_step(out: Out, step: dict[str, Any]) -> None:
    rules = f"  [{' '.join(step['rules'])}]" if step.get("rules") else ""
    words, style = _words(step)
    out.line("  ", (clock_time(step["at_ms"])[:12], "dim"), "  ", (words, style), (rules, "dim"))
    for detail in _details(step):
        out.line(_INDENT, detail)


def _words(step: dict[str, Any]) -> tuple[str, str]:
    match step["what"]:
        case "attempt_started":
            profile = f" with {step['profile']}" if step["profile"] else ""
            extra = ", a check of a blocked profile" if step["probe"] else ""
            extra += ", continuing the transcript" if step["continuation"] else ""
            extra += f", at most {span(step['timeout_ms'])}" if step["timeout_ms"] else ""
            return f"attempt {step['attempt']}: {step['model']}{profile}{extra}", "bold"
        case "call_failed":
            status = f" with HTTP {step['status']}" if step["status"] else f" ({step['origin']})"
            kept = ", reported too late to move the turn" if step["kept"] else ""
            return f"failed after {span(step['took_ms'])}{status}{kept}", "red"
        case "call_succeeded":
            took = f" after {span(step['took_ms'])}" if step["took_ms"] is not None else ""
            return f"succeeded{took} (stop: {step['stop']}, effects: {step['effects']})", "green"
        case "failure_classified":
            row = f"row {step['row']} won" if step["row"] else "nobody saw how it ended"
            return f"classified as {step['reason']}: {row}", "yellow"
        case "candidate_skipped":
            why = f", last reason {step['reason']}" if step.get("reason") else ""
            until = f", until {local_time(step['until_ms'])}" if step.get("until_ms") else ""
            return f"passed over {step['model']}: {step['because']}{why}{until}", "yellow"
        case "retry_scheduled":
            asked = (
                f", {span(step['floor_ms'])} of it asked for by the provider" if step.get("floor_ms") else ""
            )
            length = span(max(0, step["until_ms"] - step["at_ms"]))
            return (
                f"waits {length}{asked}: retry {step['retry']} of {step['of']} because of {step['reason']}",
                "",
            )
        case "chain_advanced":
            why = f" because of {step['reason']}" if step.get("reason") else ""
            return f"goes on from {step['after']} to {step['model']}{why}", ""
        case "block_set":
            scope = step.get("model") or "all its models"
            return (
                f"blocks {step['profile']} for {scope} until {local_time(step['until_ms'])} "
                f"({step['reason']} {step['kind']})",
                "red",
            )
        case "turn_answered":
            return f"answered by {step['model']}" + (
                ", a fallback" if step.get("fallback") else ""
            ), "bold green"
        case "turn_failed":
            return f"failed: {step['end']}", "bold red"
        case _ if kept := kept_text(step):
            return kept, ""
        case what:
            known = ("position", "at_ms", "what", "rules")
            fields = " ".join(field_text(key, one) for key, one in step.items() if key not in known)
            return f"{what.replace('_', ' ')} {fields}".rstrip(), ""


def _details(step: dict[str, Any]) -> list[str]:
    lines: list[str] = []
    if step["what"] == "call_failed":
        evidence = [
            f"{name} {step[key]}" for name, key in (("code", "code"), ("type", "error_type")) if step[key]
        ]
        if evidence:
            lines.append("evidence: " + ", ".join(evidence))
        if step["matched"]:
            lines.append("its text matched: " + ", ".join(step["matched"]))
        for wait in step["waits"]:
            ignored = ", which no wait can be: ignored" if wait["ignored"] else ""
            lines.append(f"stated a wait of {span(wait['wait_ms'])} ({wait['from']}{ignored})")
        if step["said"]:
            lines.append(f"the provider said: {step['said']}")
        elif step["text_erased"]:
            lines.append("the provider's text was erased")
        if step["effects"] != "none" or step["delivered"]:
            delivered = ", and part of the answer reached the caller" if step["delivered"] else ""
            lines.append(f"effects: {step['effects']}{delivered}")
    elif step["what"] == "failure_classified":
        if step["lost"]:
            lines.append("rows that matched too and lost: " + ", ".join(step["lost"]))
        if step["retry_after_ms"] is not None:
            lines.append(f"the wait that counts: {span(step['retry_after_ms'])} ({step['wait_source']})")
        if not step["replayable"]:
            lines.append("nothing may be replayed after this")
    return lines


def _number(count: int, what: str) -> str:
    return f"{count} {what}" + ("" if count == 1 else "s")


def _print_end(out: Out, story: dict[str, Any]) -> None:
    attempts, skips = _number(story["attempts"], "attempt"), _number(story["skips"], "skip")
    counts = f"{attempts}, {skips}, {span(story['waited_ms'])} waited"
    if story["outcome"] == "answered":
        out.line(
            ("answered  ", "bold green"), f"by {story['answered_by']} after {span(story['took_ms'])}: {counts}"
        )
    elif story["outcome"] == "failed":
        reason = f", {story['reason']}" if story["reason"] else ""
        out.line(("failed    ", "bold red"), f"{story['end']}{reason} after {span(story['took_ms'])}: {counts}")
        if story["first_failure"]:
            out.line("first     ", f"the first failure was attempt {story['first_failure']}")
        if story["soonest_ms"]:
            out.line("soonest   ", f"{story['soonest_model']} at {local_time(story['soonest_ms'])}")
    else:
        out.line(("unfinished", "bold yellow"), f" so far {counts}")
    for told in story["told"]:
        how = "told" if told["shown"] else "not told, only recorded"
        out.line(f"{how:<10}", told["text"], (f"  [{' '.join(told['rules'])}]", "dim"))
    if not story["told"]:
        out.line("told      ", "nothing: the user saw no notice")
