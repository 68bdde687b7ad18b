"""What a turn used and what it cost (FLOW-13): pure arithmetic over the completed calls of a turn.

Every completed call counts, also one whose answer was dropped, each at the price of its own model. Prices are
millionths of a currency unit for a million tokens, so a token costs a whole number of trillionths and sums are
exact. A cost is unknown as soon as one part of it is: the model has no price, or its provider counted nothing.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal

import msgspec

from standby.events.facts import Usage
from standby.events.policy import Price


class CallUsage(msgspec.Struct, frozen=True, kw_only=True):
    """One completed call."""

    model: str
    """As `provider/model`."""
    usage: Usage | None
    """None when the provider counted nothing."""
    cost_trillionths: int | None
    """Trillionths of a currency unit; None when price or counts are unknown."""


class TurnUsage(msgspec.Struct, frozen=True, kw_only=True):
    """All completed calls of a turn, in order, and their sums."""

    calls: tuple[CallUsage, ...] = ()
    input: int = 0
    """Tokens that went in, over all calls; what came from a cache is part of it."""
    output: int = 0
    cached: int = 0
    cost_trillionths: int | None = 0
    """None when the cost of one completed call is unknown (invariant 14)."""
    model: str = ""
    """Model of the last call, which is also the one that `context` is about."""
    context: int | None = None
    """Tokens in the context of the last call: its input and its output."""

    @property
    def cost(self) -> Decimal | None:
        """The cost in currency units, exact; None when it is unknown."""
        return None if self.cost_trillionths is None else Decimal(self.cost_trillionths).scaleb(-12)


def price_of(usage: Usage, price: Price) -> int:
    """What these tokens cost, in trillionths of a currency unit.

    Tokens from the cache are part of the input; without a price of their own they cost what input costs.
    """
    cached = min(usage.cached, usage.input)
    cached_price = price.input if price.cached is None else price.cached
    return (usage.input - cached) * price.input + cached * cached_price + usage.output * price.output


def usage_of(completed: Sequence[tuple[str, Usage | None]], prices: Mapping[str, Price]) -> TurnUsage:
    """The usage of a turn from its completed calls, as `Settled.usages` lists them."""
    calls = tuple(
        CallUsage(
            model=model,
            usage=usage,
            cost_trillionths=(
                price_of(usage, prices[model]) if usage is not None and model in prices else None
            ),
        )
        for model, usage in completed
    )
    counted = [call.usage for call in calls if call.usage is not None]
    costs = [call.cost_trillionths for call in calls if call.cost_trillionths is not None]
    last = calls[-1] if calls else None
    return TurnUsage(
        calls=calls,
        input=sum(usage.input for usage in counted),
        output=sum(usage.output for usage in counted),
        cached=sum(usage.cached for usage in counted),
        cost_trillionths=sum(costs) if len(costs) == len(calls) else None,
        model=last.model if last else "",
        context=last.usage.input + last.usage.output if last and last.usage else None,
    )
