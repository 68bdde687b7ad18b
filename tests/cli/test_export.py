"""`standby export`: lines that carry the chain, tables that answer questions, names only when asked for."""

import json
import sqlite3
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from standby.events.codec import GENESIS, decode
from tests.cli.conftest import Run
from tests.cli.logs import A, B, Made, rows

NAMES = ("alice", "bob", "carol", "openai:one", "Rate limit reached")


@pytest.mark.invariant(12)
def test_lines_carry_the_chain_and_no_names(run: Run, made: Made) -> None:
    output = run("export", "--log", str(made.path)).stdout
    lines = [json.loads(line) for line in output.splitlines()]
    assert [(line["position"], bytes.fromhex(line["hash"])) for line in lines] == [
        (position, digest) for position, _, digest in rows(made.path)
    ]
    # Whoever has the lines can follow the chain: the commit stands there letter by letter.
    previous = GENESIS
    for text, line in zip(output.splitlines(), lines, strict=True):
        body = text[text.index(',"commit":') + len(',"commit":') : -1].encode()
        previous = sha256(previous + body).digest()
        assert previous.hex() == line["hash"]
        decode(body)
    assert not any(name in output for name in NAMES)


def test_names_are_added_when_asked_for(run: Run, made: Made) -> None:
    lines = [
        json.loads(line) for line in run("export", "--with-names", "--log", str(made.path)).stdout.splitlines()
    ]
    names = {name for line in lines for name in line["names"].values()}
    assert {"main/alice", "main/bob", "openai:one"} <= names
    assert any("Rate limit reached" in name for name in names)


@pytest.mark.invariant(12)
def test_tables_and_views(run: Run, made: Made, tmp_path: Path) -> None:
    target = tmp_path / "out.db"
    said = run("export", "--sqlite", str(target), "--log", str(made.path))
    assert f"wrote {len(rows(made.path))} commits" in said.stderr
    assert said.stdout == ""
    database = sqlite3.connect(target)

    def query(sql: str) -> list[Any]:
        return database.execute(sql).fetchall()

    turn = made.turns["limited"]
    assert query(f"select selected, answered_by, attempts, outcome from turns where turn = '{turn}'") == [
        (A, B, 3, "answered")
    ]
    assert query(f"select attempt, reason, status from failures where turn = '{turn}' order by attempt") == [
        (1, "rate_limit", 429),
        (2, "rate_limit", 429),
    ]
    assert {row[0] for row in query("select turn from fallbacks")} == {turn, made.turns["sticky"]}
    assert query(f"select count(*) from skips where turn = '{made.turns['none']}'") == [(3,)]
    assert query("select outcome from turns where turn = 't-open'") == [("unfinished",)]
    assert dict(query("select reason, sum(failures) from reasons group by reason"))["rate_limit"] == 2
    assert query("select decisions from rules_used where rule = 'NOTE-1' and type = 'notice_due'") == [(1,)]
    facts = query("select count(*) from events where is_fact")
    assert facts == [(len(rows(made.path)),)]
    database.close()
    content = target.read_bytes()
    assert not any(name.encode() in content for name in NAMES)


def test_tables_with_names(run: Run, made: Made, tmp_path: Path) -> None:
    target = tmp_path / "out.db"
    said = run("export", "--with-names", "--json", "--sqlite", str(target), "--log", str(made.path)).stdout
    assert json.loads(said) == {"commits": len(rows(made.path)), "file": str(target), "names": True}
    database = sqlite3.connect(target)
    assert database.execute("select distinct session from fallbacks").fetchall() == [("main/alice",)]
    assert database.execute("select count(*) from attempts where profile = 'openai:one'").fetchone()[0] >= 2
    database.close()


def test_a_file_that_exists_is_left_alone(run: Run, made: Made, tmp_path: Path) -> None:
    target = tmp_path / "precious.txt"
    target.write_text("precious")
    assert "exists already" in run("export", "--sqlite", str(target), "--log", str(made.path), status=2).stderr
    assert target.read_text() == "precious"
    missing = tmp_path / "no" / "such" / "folder.db"
    assert run("export", "--sqlite", str(missing), "--log", str(made.path), status=2).stderr.startswith(
        "standby: "
    )
