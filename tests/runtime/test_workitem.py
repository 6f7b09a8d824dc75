"""The life of a key in the work queue, and the heap of delays."""

from __future__ import annotations

import pytest

from trimtab.runtime.workitem import Delays, Event, Item, State, after

HELD = [State.HELD, State.HELD_DIRTY, State.HELD_DELAYED]
NOT_HELD = [State.ABSENT, State.READY, State.DELAYED]


@pytest.mark.parametrize("state", State)
def test_an_add_makes_every_key_due_and_leaves_it_with_its_worker(state: State) -> None:
    assert after(state, Event.ADD) is (State.HELD_DIRTY if state in HELD else State.READY)


@pytest.mark.parametrize("state", [State.READY, State.HELD_DIRTY])
def test_a_delay_changes_no_key_that_is_due(state: State) -> None:
    assert after(state, Event.DELAY) is state


@pytest.mark.parametrize("state", [state for state in State if state is not State.READY])
def test_only_a_ready_key_can_be_got(state: State) -> None:
    with pytest.raises(KeyError):
        after(state, Event.GET)


@pytest.mark.parametrize("state", NOT_HELD)
def test_only_what_a_worker_has_can_be_done(state: State) -> None:
    with pytest.raises(KeyError):
        after(state, Event.DONE)


def test_what_left_the_heap_early_does_not_come_out_of_it() -> None:
    delays = Delays[str]()
    early, late = Item("early", 0), Item("late", 0)
    delays.put(early, 1)
    delays.put(late, 2)
    delays.remove(early)

    assert delays.take(5) == [late]


def test_an_item_brought_forward_comes_out_once() -> None:
    delays = Delays[str]()
    item = Item("a", 0)
    delays.put(item, 9)
    delays.put(item, 3)

    assert delays.take(3) == [item]
    assert delays.take(9) == []
