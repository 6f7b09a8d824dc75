"""Which credential may be tried now. The model device locks after three failures within ten minutes."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.systems.discovery.ledger.logins import (
    MAX_FAILED,
    Cause,
    LoginRecord,
    State,
    Use,
    Wait,
    attempted,
    choose,
    dropped,
    failed,
    noticed,
    state,
    succeeded,
)
from trimtab.systems.discovery.ledger.records import AddressRecord, Ledger, woken

WINDOW = 900.0
RULE = ("first", "second", "third")


def test_the_first_of_the_rule_is_tried_first() -> None:
    assert choose(LoginRecord(), RULE, 0, WINDOW) == Use("first")


def test_the_one_that_worked_last_is_tried_first() -> None:
    record = succeeded(attempted(LoginRecord(), "second", 10), "second", 11)
    assert choose(record, RULE, 12, WINDOW) == Use("second")


def test_one_that_worked_and_left_the_rule_is_not_tried() -> None:
    record = succeeded(LoginRecord(), "old", 0)
    assert choose(record, RULE, 1, WINDOW) == Use("first")


@pytest.mark.parametrize("now", [100, 500, 999])
def test_after_a_refusal_nothing_is_tried_within_the_window(now: float) -> None:
    record = failed(attempted(LoginRecord(), "first", 100), "first", 100)
    assert choose(record, RULE, now, WINDOW) == Wait(1000)


def test_after_the_window_one_that_never_failed_comes_next() -> None:
    record = failed(attempted(LoginRecord(), "first", 100), "first", 100)
    assert choose(record, RULE, 1000, WINDOW) == Use("second")


def test_when_all_failed_the_one_that_failed_longest_ago_comes_next() -> None:
    record = LoginRecord(failed={"first": 3000, "second": 1000, "third": 2000})
    assert choose(record, RULE, 9000, WINDOW) == Use("second")


def test_one_that_worked_and_was_refused_since_is_not_preferred() -> None:
    record = failed(succeeded(LoginRecord(), "first", 0), "first", 100)
    assert choose(record, RULE, 2000, WINDOW) == Use("second")


def test_a_success_keeps_what_is_known_of_the_others() -> None:
    record = succeeded(LoginRecord(failed={"first": 100}), "second", 1100)
    assert record == LoginRecord(worked="second", failed={"first": 100})


def test_an_attempt_without_an_end_counts_as_a_refusal_when_it_was_sent() -> None:
    record = attempted(LoginRecord(), "first", 100)
    assert choose(record, RULE, 500, WINDOW) == Wait(1000, Cause.NO_END)
    assert choose(record, RULE, 1000, WINDOW) == Use("second")


def test_an_attempt_without_an_end_is_forgiven_once_for_the_one_that_worked() -> None:
    record = attempted(succeeded(LoginRecord(), "second", 0), "second", 100)
    assert choose(record, RULE, 101, WINDOW) == Use("second")
    again = attempted(record, "second", 101)
    assert choose(again, RULE, 102, WINDOW) == Wait(1000, Cause.COUNTED)


def test_a_device_that_broke_off_may_be_tried_once_more() -> None:
    record = dropped(attempted(LoginRecord(), "first", 100))
    assert choose(record, RULE, 101, WINDOW) == Use("first")
    assert choose(dropped(attempted(record, "first", 101)), RULE, 102, WINDOW) == Wait(1001, Cause.NO_END)


def test_what_was_never_sent_leaves_no_trace() -> None:
    before = succeeded(LoginRecord(), "second", 0)
    assert dropped(attempted(before, "second", 100), unsent=True) == before


def test_a_device_that_breaks_off_twice_refuses_in_this_way() -> None:
    record = dropped(attempted(dropped(attempted(LoginRecord(), "first", 100)), "first", 101))
    assert choose(record, RULE, 1001, WINDOW) == Use("second")


def test_a_device_that_breaks_off_keeps_the_credential_that_worked() -> None:
    worked = succeeded(LoginRecord(), "second", 0)
    record = dropped(attempted(dropped(attempted(worked, "second", 100)), "second", 101))
    assert choose(record, RULE, 1001, WINDOW) == Use("second")


def test_what_was_never_sent_does_not_forgive_the_attempt_before() -> None:
    lost = attempted(succeeded(LoginRecord(), "second", 0), "second", 100)
    record = dropped(attempted(lost, "second", 101), unsent=True)
    assert choose(attempted(record, "second", 102), RULE, 103, WINDOW) == Wait(1000, Cause.COUNTED)


def test_a_success_does_not_make_a_device_forget_what_it_counted() -> None:
    lost = attempted(succeeded(LoginRecord(), "first", 0), "first", 100)
    record = succeeded(attempted(lost, "first", 101), "first", 101)
    other = failed(attempted(LoginRecord(), "first", 102), "first", 102)
    assert choose(LoginRecord(), RULE, 103, WINDOW, others=[record, other]) == Wait(1000, Cause.COUNTED)


def test_the_same_work_done_again_leaves_the_same_record() -> None:
    once = succeeded(attempted(LoginRecord(), "first", 10), "first", 11)
    assert succeeded(attempted(once, "first", 70), "first", 71) == once


def test_one_refusal_by_another_protocol_leaves_one_try() -> None:
    other = failed(attempted(LoginRecord(), "first", 100), "first", 100)
    assert choose(LoginRecord(), RULE, 101, WINDOW, others=[other]) == Use("first")


def test_two_refusals_by_other_protocols_leave_none() -> None:
    other = failed(attempted(LoginRecord(), "first", 100), "first", 100)
    assert choose(LoginRecord(), RULE, 101, WINDOW, others=[other, other]) == Wait(1000, Cause.COUNTED)


def test_a_refusal_that_is_told_is_no_guess_any_more() -> None:
    guessed = attempted(attempted(LoginRecord(), "first", 100), "second", 2000)
    assert choose(guessed, RULE, 2001, WINDOW) == Wait(2900, Cause.NO_END)
    assert choose(failed(guessed, "second", 2002), RULE, 2003, WINDOW) == Wait(2902, Cause.REFUSED)


def test_an_old_refusal_by_another_protocol_counts_no_more() -> None:
    old = failed(attempted(LoginRecord(), "first", 100), "first", 100)
    assert choose(LoginRecord(), RULE, 1000, WINDOW, others=[old, old]) == Use("first")


def test_a_clock_that_went_back_unlocks_nothing_early() -> None:
    record = failed(LoginRecord(), "first", 100_000)
    assert choose(noticed(record, 50_000), RULE, 50_000, WINDOW) == Wait(50_900)


def test_a_clock_that_went_back_locks_for_one_window() -> None:
    record = noticed(failed(LoginRecord(), "first", 100_000), 50_000)
    assert choose(noticed(record, 50_900), RULE, 50_900, WINDOW) == Use("second")


def test_a_clock_that_went_back_and_returned_unlocks_nothing_early() -> None:
    record = noticed(failed(LoginRecord(), "first", 100_000), 50_000)
    assert choose(noticed(record, 100_010), RULE, 100_010, WINDOW) == Wait(100_900)


def test_a_clock_that_goes_back_again_after_a_new_refusal_unlocks_nothing_early() -> None:
    record = noticed(failed(LoginRecord(), "first", 100_000), 50_000)
    record = failed(attempted(record, "second", 51_000), "second", 51_000)
    assert choose(noticed(record, 50_950), RULE, 50_950, WINDOW) == Wait(51_850)


def test_a_clock_that_goes_on_is_nothing_to_note() -> None:
    record = failed(LoginRecord(), "first", 100)
    assert noticed(record, 101) is record


def test_remembered_refusals_are_bounded_and_the_newest_stay() -> None:
    record = LoginRecord()
    for number in range(100):
        record = failed(record, f"secret-{number}", float(number))
    assert len(record.failed) == MAX_FAILED
    assert max(record.failed.values()) == 99


def test_a_rule_without_a_credential_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="one credential"):
        choose(LoginRecord(), (), 0, WINDOW)


def test_states_follow_what_is_known() -> None:
    worked = succeeded(LoginRecord(), "first", 0)
    assert state(worked, 1, WINDOW) is State.FREE
    assert state(attempted(worked, "first", 1), 2, WINDOW) is State.DOUBTFUL
    assert state(failed(worked, "first", 1), 2, WINDOW) is State.LOCKED


class Account:
    """On a device: one password, and a lock after three failures within ten minutes, over all its doors."""

    def __init__(self) -> None:
        self.password = "p0"
        self.failures: list[float] = []
        self.locked = False

    def login(self, password: str, now: float) -> bool:
        if password == self.password:
            return True
        self.failures = [at for at in self.failures if now - at < 600] + [now]
        self.locked |= len(self.failures) >= 3
        return False


DOORS = ("10.0.0.1/ssh", "10.0.0.1/netconf", "10.0.0.2/ssh", "10.0.0.2/gnmi")


class Controller:
    """As the loop does it: what is stored survives a crash, what is in memory does not."""

    def __init__(self, account: Account, rotation: dict[str, str]) -> None:
        self.account, self.rotation = account, rotation
        self.stored: dict[str, LoginRecord] = {}

    def sweep(self, now: float, chance: Random, crashes: float, drops: float) -> float:
        for door in DOORS:
            now += chance.uniform(0, 2)
            record = noticed(self.stored.get(door, LoginRecord()), now)
            others = [self.stored[other] for other in DOORS if other != door and other in self.stored]
            choice = choose(record, tuple(self.rotation), now, WINDOW, others=others)
            if isinstance(choice, Wait):
                continue
            record = self.stored[door] = attempted(record, choice.secret, now)
            if chance.random() < crashes / 3:
                return now  # before it was sent
            accepted = self.account.login(self.rotation[choice.secret], now)
            if chance.random() < crashes:
                return now  # before the answer was stored
            if chance.random() < drops:
                self.stored[door] = dropped(record)
            else:
                self.stored[door] = (succeeded if accepted else failed)(record, choice.secret, now)
        return now


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32),
    crashes=st.sampled_from([0.0, 0.1, 0.5, 0.95]),
    drops=st.sampled_from([0.0, 0.1, 0.9]),
    changes=st.sampled_from([0.0, 0.05, 0.3]),
    pause=st.sampled_from([1.0, 30.0, 300.0, 1000.0]),
)
def test_no_schedule_of_sweeps_and_crashes_locks_a_device(
    seed: int, crashes: float, drops: float, changes: float, pause: float
) -> None:
    chance = Random(seed)
    account = Account()
    controller = Controller(account, {"first": "p1", "second": "p0", "third": "p2"})
    now = 1_000_000.0
    for _ in range(150):
        if chance.random() < changes:
            account.password = f"p{chance.randrange(5)}"
        if chance.random() < changes:
            controller.rotation[chance.choice(RULE)] = f"p{chance.randrange(5)}"
        now = controller.sweep(now, chance, crashes, drops) + chance.uniform(0, 2 * pause)
        assert not account.locked


@given(seed=st.integers(0, 2**32))
def test_a_credential_that_is_right_is_found_in_the_end(seed: int) -> None:
    chance = Random(seed)
    account = Account()
    account.password = f"p{chance.randrange(3)}"
    controller = Controller(account, {"first": "p1", "second": "p0", "third": "p2"})
    now = 0.0
    for _ in range(200):
        now = controller.sweep(now, chance, 0.05, 0.05) + 120
    worked = {record.worked for record in controller.stored.values()}
    assert {controller.rotation[secret] for secret in worked - {""}} == {account.password}


@given(seed=st.integers(0, 2**32))
def test_a_clock_that_jumps_back_at_random_locks_nobody_out(seed: int) -> None:
    chance = Random(seed)
    account = Account()
    account.password = "another"
    controller = Controller(account, {"first": "p1", "second": "p0"})
    real = shift = 0.0
    for _ in range(100):
        wall = 1e6 + real + shift
        for door in DOORS[:1]:
            record = noticed(controller.stored.get(door, LoginRecord()), wall)
            choice = choose(record, tuple(controller.rotation), wall, WINDOW)
            controller.stored[door] = record
            if isinstance(choice, Use):
                account.login(controller.rotation[choice.secret], real)
                controller.stored[door] = failed(attempted(record, choice.secret, wall), choice.secret, wall)
        assert not account.locked
        real += chance.uniform(0, 120)
        if chance.random() < 0.05:
            shift -= chance.uniform(0, 5000)


def test_a_crash_loop_that_noted_nothing_is_stopped_by_the_ledger_it_wakes_with() -> None:
    worked = succeeded(LoginRecord(), "first", 0)
    ledger = Ledger(run="r1", records={"10.0.0.1": AddressRecord(logins={"ssh": worked})})
    tries = 0
    for now in (100.0, 110.0, 120.0, 130.0):
        ledger = woken(ledger, now)
        record = ledger.records["10.0.0.1"].logins["ssh"]
        tries += isinstance(choose(record, RULE, now, WINDOW), Use)
    assert tries == 1
