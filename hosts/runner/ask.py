"""What a caller asks of the runner."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypedDict

from standby.events.vocabulary import Failure, SelectionSource, Surface, TurnKind
from standby.hosts.providers.values import Prompt

Repairing: TypeAlias = Callable[[Prompt, Failure | None], Prompt | None]
"""Repairs a request that did not fit or was refused for its form; None when it cannot."""

Continuing: TypeAlias = Callable[[Prompt], Prompt]
"""Turns the prompt into the continuation of the transcript that the caller keeps (REC-6)."""


class TurnFields(TypedDict, total=False):
    """What else can be said about a turn; the meaning is that of `turn_requested`."""

    agent: str
    turn: str
    model: str
    source: SelectionSource
    fallbacks: Sequence[str] | None
    locked: bool
    rerouted: bool
    kind: TurnKind
    surface: Surface
    image: bool
    max_retries: int | None
    input_tokens: int | None
    continuable: bool
    answer_required: bool
    local_settings: bool
    selected_only: bool
    harness: str
    allowance_ms: int | None
    hidden: bool
    continues: str


@dataclass(slots=True, kw_only=True)
class Ask:
    """One turn as it is asked for. The prompt is held while the turn runs and stored nowhere."""

    prompt: Prompt
    session: str = ""
    stream: bool = False
    delivers: bool = False
    """Output goes to the caller while it comes in."""
    resumes: str = ""
    """Id of a turn to go on with; "" starts one."""
    timeout_ms: int | None = None
    deadline_ms: int | None = None
    on_status: Callable[[Any], Any] | None = None
    on_notice: Callable[[str], Any] | None = None
    repair: Repairing | None = None
    continues: Continuing | None = None
    fields: TurnFields | None = None


def prompt_of(prompt: Prompt | str) -> Prompt:
    """A plain text is one message of the user's."""
    if isinstance(prompt, str):
        return Prompt(messages=({"role": "user", "content": prompt},))
    return prompt


# Tools of these types are described by the caller and run by the caller; a provider runs all others itself
# (searches, code, remote servers), or may: an unknown type counts as one of them.
_RUN_BY_CALLER: Final = frozenset({None, "function", "custom"})
_EXTRAS: Final = frozenset(
    {"tools", "mcp_servers", "web_search_options", "plugins", "container", "search_parameters"}
)


def runs_tools_itself(prompt: Prompt) -> bool:
    """Whether the provider may do things in the world while it answers this prompt."""
    return any(tool.get("type") not in _RUN_BY_CALLER for tool in prompt.tools) or not _EXTRAS.isdisjoint(
        prompt.extra
    )
