"""Any schema, any configuration: the rules of Terraform hold, and the plan after an apply is empty."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.terraform import rules
from tests.terraform.framework.core import Core, Unusable
from tests.terraform.framework.schemas import Dice
from trimtab.terraform.framework.consistency import plan_faults, result_faults
from trimtab.terraform.framework.planning import plan
from trimtab.terraform.framework.schema import Schema, SchemaError, check
from trimtab.terraform.framework.shaping import Misfit, shaped
from trimtab.terraform.framework.values import whole

SEEDS = st.integers(0, 2**32)


@contextlib.contextmanager
def usable() -> Iterator[None]:
    try:
        yield
    except (SchemaError, Unusable):
        assume(False)


def drawn(seed: int) -> tuple[Dice, Schema, Core]:
    dice = Dice(seed)
    schema = dice.schema()
    check(schema)
    return dice, schema, Core(dice, schema)


@pytest.mark.row(64)
@given(SEEDS)
@settings(max_examples=300, deadline=None)
def test_apply_then_plan_is_empty_whatever_the_schema(seed: int) -> None:
    with usable():
        dice, schema, core = drawn(seed)
        for _ in range(2):
            config = dice.config(schema)
            core.apply(config)
            core.refresh()
            core.unchanged(dice.turned(core.type, config))


@given(SEEDS)
@settings(max_examples=300, deadline=None)
def test_a_plan_of_what_is_not_yet_known_keeps_the_rules(seed: int) -> None:
    with usable():
        dice, schema, core = drawn(seed)
        config = dice.config(schema, unknown=0.2)
        core.plan(config)
        core.apply(dice.config(schema))
        core.plan(config)


@given(SEEDS)
@settings(max_examples=300, deadline=None)
def test_what_was_planned_holds_once_all_is_known(seed: int) -> None:
    """Terraform plans again before it applies; the second plan may say more than the first, and nothing else."""
    with usable():
        dice, schema, core = drawn(seed)
        if dice.random.random() < 0.7:
            core.apply(dice.config(schema))
        config = dice.config(schema, unknown=0.2)
        early, replaces = core.plan(config)
        final, replaces_now = core.plan(dice.settled(schema, config))
        assert rules.final_plan_errors(core.schema, early, final) == []
        assert replaces or not replaces_now


@given(SEEDS)
@settings(max_examples=300, deadline=None)
def test_our_own_check_agrees_with_terraform_s(seed: int) -> None:
    """A plan or a result that was damaged at random is refused by us just when it is by Terraform."""
    with usable():
        dice, schema, core = drawn(seed)
        config, other = (shaped(dice.config(schema, unknown=0.1), core.type) for _ in range(2))
        damaged = {name: other[name] if dice.random.random() < 0.3 else value for name, value in config.items()}
        ours = bool(list(plan_faults(schema, config, None, damaged)))
        theirs = bool(rules.plan_errors(core.schema, None, config, damaged))
        assert ours == theirs
        planned = plan(schema, dice.config(schema), None).value
        result = dice.filled(schema, planned)
        if dice.random.random() < 0.5:
            result = {**result, dice.random.choice(list(result)): dice.random.choice(list(other.values()))}
        try:
            result = shaped(result, core.type)
        except Misfit:
            assume(False)
        assume(whole(result))
        assert bool(list(result_faults(schema, planned, result))) == bool(
            rules.result_errors(core.schema, planned, result)
        )
