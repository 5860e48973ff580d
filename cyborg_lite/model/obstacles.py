# SPDX-License-Identifier: Apache-2.0
"""What stands between a group of a device profile and the providers that there are.

One provider serves a whole group: so Nova asks Placement.
"""

from collections.abc import Sequence

from cyborg_lite.model.explanations import Asked, Demand, Reason, Supply, Why


def serves(asked: Asked, one: Supply) -> bool:
    """Whether a server could be given the group from it now."""
    offered = one.rp_uuid in asked.offers and one.closed is None
    return offered and one.free_handles >= asked.demand.handles


def is_right(asked: Asked, one: Supply) -> bool:
    """Whether it would serve the group were it free."""
    ((name, amount),) = asked.demand.amounts
    enough = one.resource_class == name and one.total >= amount
    return enough and _has_right_traits(asked, one)


def _has_right_traits(asked: Asked, one: Supply) -> bool:
    # Operators may add traits in Placement, which we keep there and do not know.
    required, forbidden = asked.demand.required, asked.demand.forbidden
    by_our_books = required <= one.traits and not forbidden & one.traits
    return by_our_books or one.rp_uuid in asked.marked


def several_classes(demand: Demand, index: int) -> Reason | None:
    """None: there is only one class in the group."""
    if len(demand.amounts) == 1:
        return None
    names = ' and '.join(demand.classes)
    text = f'No provider has {names} together: give each a group of its own.'
    return Reason(Why.SEVERAL_CLASSES, text, index)


def of_provider(index: int, asked: Asked, one: Supply) -> Reason:
    """The first thing that keeps a provider of the right class from the group."""
    demand = asked.demand
    ((name, amount),) = demand.amounts

    def because(why: Why, text: str, traits: Sequence[str] = ()) -> Reason:
        return Reason(why, text, index, name, tuple(traits), (one.name,))

    if not _has_right_traits(asked, one):
        lacking = sorted(demand.required - one.traits)
        if lacking:
            return because(
                Why.MISSING_TRAIT, f'It lacks trait {", ".join(lacking)}.', lacking
            )
        shunned = sorted(demand.forbidden & one.traits)
        text = f'It has the forbidden trait {", ".join(shunned)}.'
        return because(Why.FORBIDDEN_TRAIT, text, shunned)
    if one.total < amount:
        text = f'It has {one.total} {name}, and one provider must serve {amount}.'
        return because(Why.TOO_FEW_UNITS, text)
    if one.closed is not None:
        return because(one.closed, one.closed_text)
    if one.free < amount or one.free_handles < demand.handles:
        free = min(one.free, one.free_handles)
        text = f'{free} of {one.total} units are free, and {amount} are wanted.'
        return because(Why.NO_FREE_UNIT, text)
    text = (
        'Placement does not offer it: it was not told of it yet, or has allocations, '
        'reservations or traits there that are not ours.'
    )
    return because(Why.NOT_OFFERED, text)


def of_all(index: int, asked: Asked, supplies: Sequence[Supply]) -> Reason | None:
    """What keeps the group from all providers, were they free; None: nothing does."""
    demand = asked.demand
    mixture = several_classes(demand, index)
    if mixture is not None:
        return mixture
    ((name, amount),) = demand.amounts
    of_class = [one for one in supplies if one.resource_class == name]
    if not of_class:
        text = f'No host has any {name}.'
        if name == 'GPU':
            text = 'Placement has no resource class GPU: ask for PGPU or VGPU.'
        return Reason(Why.MISSING_CLASS, text, index, name)
    right = [one for one in of_class if _has_right_traits(asked, one)]
    if not right:
        return _traits_nowhere(index, demand, of_class)
    largest = max(one.total for one in right)
    if largest < amount:
        text = (
            f'The group asks for {amount} {name}. One provider serves a whole group, '
            f'and the largest that fits has {largest}: make more groups of it.'
        )
        return Reason(Why.TOO_FEW_UNITS, text, index, name)
    return None


def _traits_nowhere(index: int, demand: Demand, of_class: Sequence[Supply]) -> Reason:
    (name,) = demand.classes
    present = frozenset[str]().union(*(one.traits for one in of_class))
    lacking = tuple(sorted(demand.required - present))
    if lacking:
        text = f'No provider of {name} has trait {", ".join(lacking)}.'
        return Reason(Why.MISSING_TRAIT, text, index, name, lacking)
    if demand.required:
        text = f'No provider of {name} has all of the traits, and no forbidden one.'
        wanted = tuple(sorted(demand.required))
        return Reason(Why.MISSING_TRAIT, text, index, name, wanted)
    text = f'Every provider of {name} has a forbidden trait.'
    shunned = tuple(sorted(demand.forbidden))
    return Reason(Why.FORBIDDEN_TRAIT, text, index, name, shunned)
