"""A service that errs, hangs, drops or pushes back ends in an answer or a typed failure, in time, and counted."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pytest
from conformance.model_client import Facts, FullMeter, Stopped, asked
from doubles.messages_server import Fault, ModelDouble
from model_world import ANTHROPIC, OPENAI, Open

from cda.contracts.model_client import FailureKind, ModelFailure, UnlimitedMeter, UserTurn

pytestmark = pytest.mark.promise("clients.faults")
BOTH = pytest.mark.parametrize("model", [ANTHROPIC, OPENAI])
SOON = {"retry-after-ms": "20"}


class TimedMeter(UnlimitedMeter):
    """A meter whose time runs."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        super().__init__()

    @property
    def remaining_s(self) -> float:  # type: ignore[override]
        return max(0.0, self._until - time.monotonic())

    @remaining_s.setter
    def remaining_s(self, value: float) -> None:
        """The base class sets its own; ours runs."""


@BOTH
@pytest.mark.parametrize(
    "fault",
    [
        Fault("status", status=429, headers=SOON),
        Fault("status", status=529, headers=SOON),
        Fault("status", status=500, headers=SOON),
        Fault("page", status=502, headers=SOON),
        Fault("drop"),
        Fault("cut"),
        Fault("garbled"),
        Fault("empty"),
    ],
    ids=lambda fault: f"{fault.kind}-{fault.status}",
)
def test_a_fault_that_passes_is_asked_over(double: ModelDouble, open_client: Open, model: str, fault: Fault) -> None:
    double.faults = [Fault(fault.kind, 2, None, fault.status, fault.headers)]
    client, meter = open_client(model), UnlimitedMeter()
    assert isinstance(client.ask(asked(), meter).answer, Facts)
    assert len(double.questions) == 3
    assert sum(call.tries for call in meter.calls) == 3
    assert meter.calls[-1].outcome == "ok"


@BOTH
@pytest.mark.parametrize("kind", ["drop", "cut", "garbled", "empty"])
def test_a_try_that_may_have_been_paid_is_counted_at_the_most_it_can_have_cost(
    double: ModelDouble, open_client: Open, model: str, kind: str
) -> None:
    double.faults = [Fault(kind)]  # type: ignore[arg-type]
    client, meter = open_client(f"{model},tokens=1000"), UnlimitedMeter()
    client.ask(asked(), meter)
    lost, good = meter.calls
    assert (lost.outcome, lost.estimated, lost.usage.output) == ("model_unreachable", True, 1000)
    assert lost.usage.input >= good.usage.input
    assert lost.usd > good.usd
    assert (good.outcome, good.estimated) == ("ok", False)


@pytest.mark.parametrize("kind", ["drop", "cut"])
def test_a_meter_that_is_full_after_a_lost_try_stops_the_next(
    double: ModelDouble, open_client: Open, kind: str
) -> None:
    double.faults = [Fault(kind, 9)]  # type: ignore[arg-type]
    with pytest.raises(Stopped):
        open_client().ask(asked(), FullMeter(1))
    assert len(double.questions) == 1


@BOTH
@pytest.mark.parametrize("kind", ["hang", "trickle"])
def test_a_service_that_hangs_or_trickles_ends_with_the_run_s_time_and_leaves_no_task(
    double: ModelDouble, open_client: Open, model: str, kind: str
) -> None:
    double.faults = [Fault(kind, 9)]  # type: ignore[arg-type]
    client, meter = open_client(model), TimedMeter(0.6)
    began = time.monotonic()
    with pytest.raises(ModelFailure) as caught:
        client.ask(asked(), meter)
    assert time.monotonic() - began < 2.0
    assert caught.value.kind is FailureKind.TIMED_OUT
    assert client.pending() == 0
    assert [(call.outcome, call.estimated) for call in meter.calls] == [("model_timed_out", True)]
    double.faults = []
    assert isinstance(client.ask(asked(), UnlimitedMeter()).answer, Facts)  # the connection is no use, the client is


def test_the_time_of_a_role_holds_when_the_run_has_more(double: ModelDouble, open_client: Open) -> None:
    double.faults = [Fault("hang", 9)]
    began = time.monotonic()
    with pytest.raises(ModelFailure, match="model_timed_out"):
        open_client(f"{ANTHROPIC},seconds=1").ask(asked(), UnlimitedMeter())
    assert 0.9 < time.monotonic() - began < 3.0


@BOTH
@pytest.mark.parametrize("status", [429, 529, 503])
def test_a_service_that_is_overloaded_for_ever_is_given_up_after_the_tries(
    double: ModelDouble, open_client: Open, model: str, status: int
) -> None:
    double.faults = [Fault("status", 99, None, status, SOON)]
    client, meter = open_client(model, CDA_MODEL_TRIES=4), UnlimitedMeter()
    with pytest.raises(ModelFailure) as caught:
        client.ask(asked(), meter)
    assert caught.value.kind is FailureKind.OVERLOADED
    assert len(double.questions) == 4
    assert [(call.outcome, call.tries, call.usd) for call in meter.calls] == [("model_overloaded", 4, Decimal(0))]


@pytest.mark.parametrize("asks", ["300", "4294967", "99999999999999999999"])
def test_a_wait_that_is_longer_than_the_time_left_is_not_begun(
    double: ModelDouble, open_client: Open, asks: str
) -> None:
    double.faults = [Fault("status", 9, None, 429, {"retry-after": asks})]
    began = time.monotonic()
    with pytest.raises(ModelFailure, match=r"model_overloaded: .*asks to wait"):
        open_client().ask(asked(), TimedMeter(30.0))
    assert time.monotonic() - began < 3.0
    assert len(double.questions) == 1


def test_a_service_that_forbids_another_try_is_not_asked_again(double: ModelDouble, open_client: Open) -> None:
    double.faults = [Fault("status", 9, None, 529, {"x-should-retry": "false"})]
    with pytest.raises(ModelFailure, match="model_overloaded"):
        open_client().ask(asked(), UnlimitedMeter())
    assert len(double.questions) == 1


@BOTH
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, FailureKind.REJECTED),
        (401, FailureKind.UNAUTHORISED),
        (402, FailureKind.REJECTED),
        (403, FailureKind.UNAUTHORISED),
        (404, FailureKind.UNKNOWN_MODEL),
        (413, FailureKind.REJECTED),
    ],
)
def test_a_request_that_will_never_do_is_asked_once(
    double: ModelDouble, open_client: Open, model: str, status: int, kind: FailureKind
) -> None:
    double.faults = [Fault("status", 9, None, status)]
    with pytest.raises(ModelFailure) as caught:
        open_client(model).ask(asked(answer=None), UnlimitedMeter())
    assert caught.value.kind is kind
    assert str(status) in str(caught.value)
    assert len(double.questions) == 1


@BOTH
def test_what_cannot_be_put_on_the_wire_is_rejected_and_costs_nothing(
    double: ModelDouble, open_client: Open, model: str
) -> None:
    meter = UnlimitedMeter()
    with pytest.raises(ModelFailure, match="model_rejected"):
        open_client(model).ask(asked(turns=(UserTurn('{"note": "\ud800"}'),)), meter)
    assert [(call.usd, call.estimated) for call in meter.calls] == [(Decimal(0), False)]
    assert double.questions == []


@pytest.mark.parametrize("status", [500, 502, 504])
def test_only_a_gateway_s_error_may_hide_a_paid_answer(double: ModelDouble, open_client: Open, status: int) -> None:
    double.faults = [Fault("page", 1, None, status, SOON)]
    meter = UnlimitedMeter()
    open_client().ask(asked(), meter)
    assert [call.estimated for call in meter.calls] == ([False] if status == 500 else [True, False])


@BOTH
def test_an_endpoint_that_goes_down_is_one_failure(double: ModelDouble, open_client: Open, model: str) -> None:
    client, meter = open_client(model, look=False, CDA_MODEL_TRIES=2), UnlimitedMeter()
    double.close()
    with pytest.raises(ModelFailure, match="model_unreachable: the service cannot be reached"):
        client.ask(asked(), meter)
    assert [(call.usd, call.estimated) for call in meter.calls] == [(Decimal(0), False)]


@pytest.mark.promise("clients.closed")
def test_closing_ends_what_is_under_way_and_what_waits_for_its_turn(double: ModelDouble, open_client: Open) -> None:
    double.faults = [Fault("hang", 9)]
    client = open_client(CDA_MODEL_CONCURRENCY=2)
    with ThreadPoolExecutor(4) as pool:
        asking = [pool.submit(client.ask, asked(), UnlimitedMeter()) for _ in range(4)]
        until = time.monotonic() + 10
        while client.pending() < 2 and time.monotonic() < until:
            time.sleep(0.01)
        assert client.pending() == 2
        client.close()
        failures = [one.exception(10) for one in asking]
    assert [str(failure) for failure in failures] == ["model_unreachable: the client was closed (extractor)"] * 4
    assert client.pending() == 0
    assert not [thread for thread in threading.enumerate() if thread.name == "cda-models" and thread.is_alive()]


@pytest.mark.promise("clients.repaired")
def test_a_compatible_server_s_broken_answer_is_repaired_once_and_both_are_paid(
    double: ModelDouble, open_client: Open
) -> None:
    double.faults = [Fault("prose")]
    client, meter = open_client(OPENAI), UnlimitedMeter()
    assert isinstance(client.ask(asked(), meter).answer, Facts)
    assert [call.outcome for call in meter.calls] == ["model_bad_answer", "ok"]
    assert all(call.usd > 0 for call in meter.calls)
    double.faults = [Fault("prose", 9)]
    double.seen.clear()
    with pytest.raises(ModelFailure, match="model_bad_answer"):
        client.ask(asked(), meter)
    assert len(double.questions) == 2


@pytest.mark.promise("clients.repaired")
def test_a_repair_that_the_meter_does_not_admit_is_not_made(double: ModelDouble, open_client: Open) -> None:
    double.faults = [Fault("broken", 9)]
    with pytest.raises(Stopped):
        open_client(OPENAI).ask(asked(), FullMeter(1))
    assert len(double.questions) == 1


@pytest.mark.promise("clients.repaired")
def test_a_server_without_schemas_is_asked_by_tool_and_remembered(double: ModelDouble, open_client: Open) -> None:
    double.schemas = False
    client = open_client(OPENAI)
    for _ in range(2):
        assert isinstance(client.ask(asked(), UnlimitedMeter()).answer, Facts)
    assert [one.status for one in double.questions] == [400, 200, 200]


@pytest.mark.promise("clients.in_flight")
def test_no_more_requests_are_in_flight_than_settings_allow_and_no_time_is_lost(
    double: ModelDouble, open_client: Open
) -> None:
    client = open_client(CDA_MODEL_CONCURRENCY=4)
    client.ask(asked(), UnlimitedMeter())
    double.most_in_flight, double.latency_s = 0, 0.25
    began = time.monotonic()
    with ThreadPoolExecutor(16) as pool:
        replies = list(pool.map(lambda _: client.ask(asked(), UnlimitedMeter()), range(16)))
    took = time.monotonic() - began
    assert double.most_in_flight == 4
    assert took < 1.6 * 16 * 0.25 / 4
    assert all(reply.answer == replies[0].answer for reply in replies)


@pytest.mark.promise("clients.in_flight")
def test_push_back_lowers_how_many_are_in_flight_for_all(double: ModelDouble, open_client: Open) -> None:
    client = open_client(CDA_MODEL_CONCURRENCY=8)
    double.faults = [Fault("status", 1, None, 429, SOON)]
    client.ask(asked(), UnlimitedMeter())
    assert client.pacing.limit == 6
    for _ in range(6):
        client.ask(asked(), UnlimitedMeter())
    assert client.pacing.limit == 7
