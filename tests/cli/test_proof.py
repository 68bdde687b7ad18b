"""`standby verify` and `standby head`: what holds is said to hold, and no tampering gets through."""

import json
import sqlite3
from pathlib import Path

import msgspec
import pytest

from standby.engine.checkpoint import VERSION, dump
from standby.events.decisions import BlockSet, StickySet
from standby.events.facts import PolicyAdopted
from standby.events.store import CheckpointRow
from standby.hosts.core import load_view, open_store
from tests.cli.conftest import Run
from tests.cli.logs import Made, commit_at, resealed, rows, sql


def refused_at(run: Run, made: Made, *more: str) -> int:
    """The position that `verify` names, in text and in JSON alike."""
    plain = run("verify", *more, "--log", str(made.path), status=2)
    found = json.loads(run("verify", "--json", *more, "--log", str(made.path), status=2).stdout)
    assert found["holds"] is False
    assert f"refused at position {found['refused_at']}" in plain.stdout
    assert f"refused at position {found['refused_at']}" in plain.stderr
    return int(found["refused_at"])


def test_a_log_that_the_system_wrote_is_proved(run: Run, made: Made) -> None:
    count = len(rows(made.path))
    decisions = sum(len(commit_at(made.path, at).decisions) for at in range(1, count + 1))
    plain = run("verify", "--log", str(made.path)).stdout
    assert f"{decisions} recomputed from the facts, all agree" in plain
    assert f"{count} of {count} commits" in plain
    found = json.loads(run("verify", "--json", "--log", str(made.path)).stdout)
    assert (found["holds"], found["commits"], found["decisions"]) == (True, count, decisions)
    assert found["head"]["position"] == count


@pytest.mark.invariant(11)
def test_one_changed_byte_in_any_commit_is_refused_there(run: Run, original: Made, tmp_path: Path) -> None:
    stored = rows(original.path)
    for position, body, _ in stored:
        copy = Made(tmp_path / f"{position}.db")
        copy.path.write_bytes(original.path.read_bytes())
        at = len(body) // 2
        changed = body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :]
        with sql(copy.path) as connection:
            connection.execute("UPDATE commits SET body = ? WHERE position = ?", (changed, position))
        assert refused_at(run, copy) == position


@pytest.mark.invariant(11)
def test_a_decision_that_is_off_by_a_millisecond_is_refused_though_the_chain_is_right(
    run: Run, made: Made
) -> None:
    altered = 0
    for position, _, _ in rows(made.path):
        commit = commit_at(made.path, position)
        for at, decision in enumerate(commit.decisions):
            if isinstance(decision, BlockSet | StickySet):
                forged = msgspec.structs.replace(decision, until_ms=decision.until_ms + 1)
                decisions = (*commit.decisions[:at], forged, *commit.decisions[at + 1 :])
                resealed(made.path, {position: msgspec.structs.replace(commit, decisions=decisions)})
                assert refused_at(run, made) == position
                resealed(made.path, {position: commit})
                altered += 1
    assert altered >= 4
    run("verify", "--log", str(made.path))


@pytest.mark.invariant(11)
@pytest.mark.parametrize("change", ["removed", "doubled", "swapped"])
def test_rows_are_where_they_were_written(run: Run, made: Made, change: str) -> None:
    last = len(rows(made.path))
    with sql(made.path) as connection:
        if change == "removed":
            connection.execute("DELETE FROM commits WHERE position = 5")
        elif change == "doubled":
            connection.execute("UPDATE commits SET position = position + 1000 WHERE position > 5")
            connection.execute("INSERT INTO commits SELECT 6, body, hash FROM commits WHERE position = 5")
            connection.execute("UPDATE commits SET position = position - 999 WHERE position > 1000")
            assert connection.execute("SELECT count(*) FROM commits").fetchone() == (last + 1,)
        else:
            connection.execute("UPDATE commits SET position = 0 WHERE position = 5")
            connection.execute("UPDATE commits SET position = 5 WHERE position = 6")
            connection.execute("UPDATE commits SET position = 6 WHERE position = 0")
    assert refused_at(run, made) == (6 if change == "doubled" else 5)


@pytest.mark.invariant(11)
def test_a_cut_off_tail_shows_against_a_head_that_was_kept(run: Run, made: Made) -> None:
    head = run("head", "--log", str(made.path)).stdout.strip()
    last = len(rows(made.path))
    assert head.startswith(f"{last}:")
    assert "kept head" in run("verify", "--head", head, "--log", str(made.path)).stdout
    with sql(made.path) as connection:
        connection.execute("DELETE FROM commits WHERE position > ?", (last - 2,))
    # By itself the rest is a consistent log; only who kept the head can tell.
    run("verify", "--log", str(made.path))
    assert refused_at(run, made, "--head", head) == last - 1


@pytest.mark.invariant(11)
def test_another_history_of_the_same_length_is_not_the_kept_one(run: Run, made: Made) -> None:
    head = run("head", "--log", str(made.path)).stdout.strip()
    last = len(rows(made.path))
    resealed(made.path, {1: msgspec.structs.replace(commit_at(made.path, 1), entropy=7)})
    run("verify", "--log", str(made.path))
    assert refused_at(run, made, "--head", head) == last


def test_an_altered_text_is_refused_where_it_is_used(run: Run, made: Made) -> None:
    with sql(made.path) as connection:
        (alias,) = connection.execute("SELECT alias FROM side_entries WHERE kind = 'text' LIMIT 1").fetchone()
        connection.execute("UPDATE side_entries SET text = text || '!' WHERE alias = ?", (alias,))
    refused_at(run, made)


def test_an_altered_name_is_refused(run: Run, made: Made) -> None:
    with sql(made.path) as connection:
        connection.execute("UPDATE side_entries SET text = 'main/mallory' WHERE text = 'main/alice'")
    refused_at(run, made)


def test_an_altered_checkpoint_is_refused_and_rebuilding_helps(run: Run, made: Made) -> None:
    run("replay", "--rebuild", "--log", str(made.path))
    assert "is what the log gives" in run("verify", "--log", str(made.path)).stdout
    with sql(made.path) as connection:
        ((position, body),) = connection.execute("SELECT position, body FROM checkpoints").fetchall()
        connection.execute("UPDATE checkpoints SET body = ?", (body[:-1] + bytes([body[-1] ^ 1]),))
    assert refused_at(run, made) == position
    run("replay", "--rebuild", "--log", str(made.path))
    run("verify", "--log", str(made.path))


def test_a_checkpoint_beyond_the_end_is_refused(run: Run, made: Made) -> None:
    store = open_store(made.path)
    view = load_view(store)
    view.position += 5
    store.save_checkpoint(CheckpointRow(view.position, view.hash, VERSION, dump(view)))
    store.close()
    assert refused_at(run, made) == len(rows(made.path)) + 1
    run("replay", "--rebuild", "--log", str(made.path))
    run("verify", "--log", str(made.path))


# ---- files that are no log, or not one for us ----------------------------------------------------------

READERS = [
    ("status",), ("log",), ("explain", "last"), ("verify",), ("head",), ("replay",), ("export",),
    ("session", "show", "alice"), ("erase", "--session", "alice"),
]  # fmt: skip


def message(run: Run, path: Path, command: tuple[str, ...]) -> str:
    """What the command says on stderr when it refuses, which it has to do without a traceback."""
    result = run(*command, "--log", str(path), status=2)
    assert result.stderr.startswith("standby: ")
    assert "Traceback" not in result.output
    return result.stderr


@pytest.mark.parametrize("command", READERS)
class TestNotALog:
    def test_missing(self, run: Run, tmp_path: Path, command: tuple[str, ...]) -> None:
        assert "there is no log at" in message(run, tmp_path / "none.db", command)
        assert not (tmp_path / "none.db").exists()

    def test_empty(self, run: Run, tmp_path: Path, command: tuple[str, ...]) -> None:
        (tmp_path / "empty.db").touch()
        message(run, tmp_path / "empty.db", command)
        assert (tmp_path / "empty.db").stat().st_size == 0

    def test_foreign_text(self, run: Run, tmp_path: Path, command: tuple[str, ...]) -> None:
        (tmp_path / "notes.txt").write_text("nothing of ours\n" * 20)
        assert "not a log of standby" in message(run, tmp_path / "notes.txt", command)

    def test_foreign_database(self, run: Run, tmp_path: Path, command: tuple[str, ...]) -> None:
        with sql(tmp_path / "other.db") as connection:
            connection.execute("CREATE TABLE t (x)")
        before = (tmp_path / "other.db").read_bytes()
        assert "another program" in message(run, tmp_path / "other.db", command)
        assert (tmp_path / "other.db").read_bytes() == before

    def test_folder(self, run: Run, tmp_path: Path, command: tuple[str, ...]) -> None:
        assert "folder" in message(run, tmp_path, command)

    def test_newer_format(self, run: Run, made: Made, command: tuple[str, ...]) -> None:
        with sql(made.path) as connection:
            connection.execute("PRAGMA user_version = 99")
            connection.execute("PRAGMA journal_mode = DELETE")
        before = made.path.read_bytes()
        assert "format 99" in message(run, made.path, command)
        assert made.path.read_bytes() == before

    def test_truncated(self, run: Run, made: Made, command: tuple[str, ...]) -> None:
        with sql(made.path) as connection:
            connection.execute("PRAGMA journal_mode = DELETE")
        whole = made.path.read_bytes()
        made.path.write_bytes(whole[: len(whole) // 2])
        result = run(*command, "--log", str(made.path), status=2)
        assert result.stderr.startswith("standby: ")


DECIDING = [("verify",), ("replay",), ("status",), ("erase", "--session", "alice")]


@pytest.mark.parametrize("command", DECIDING)
def test_newer_logic_is_said_and_nothing_is_touched(run: Run, made: Made, command: tuple[str, ...]) -> None:
    adopted = commit_at(made.path, 2)
    assert isinstance(adopted.fact, PolicyAdopted)
    policy = msgspec.structs.replace(adopted.fact.policy, logic=99)
    newer = msgspec.structs.replace(adopted, fact=PolicyAdopted(policy=policy))
    resealed(made.path, {2: newer})
    before = rows(made.path)
    said = message(run, made.path, command)
    assert "logic 99" in said
    assert "newer" in said
    assert rows(made.path) == before


def test_a_newer_shape_of_a_commit_is_no_damage(run: Run, made: Made) -> None:
    resealed(made.path, {3: msgspec.structs.replace(commit_at(made.path, 3), shape=9)})
    assert "use a newer standby" in message(run, made.path, ("verify",))


@pytest.mark.parametrize("head", ["", "7", "x:00", "3:zz", "3:abcd", "-1:" + "00" * 32])
def test_what_is_no_head_is_said(run: Run, made: Made, head: str) -> None:
    assert "is no head" in run("verify", "--head", head, "--log", str(made.path), status=2).stderr


def test_a_locked_or_closed_file_is_said(run: Run, made: Made) -> None:
    writer = sqlite3.connect(made.path)
    writer.execute("BEGIN IMMEDIATE")
    try:
        # Another writer holds the lock: reading goes on all the same.
        run("verify", "--log", str(made.path))
        run("status", "--log", str(made.path))
    finally:
        writer.close()
