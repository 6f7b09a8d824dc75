"""Data sources, ephemeral resources and functions on the wire."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from trimtab.terraform.framework.calls import (
    Message,
    faults,
    fitted,
    guarded,
    private_bytes,
    private_of,
    received_object,
    sent,
    told,
)
from trimtab.terraform.framework.consistency import unknown_faults
from trimtab.terraform.framework.context import Context
from trimtab.terraform.framework.data_source import DataSource, ReadData
from trimtab.terraform.framework.diagnostics import Failed
from trimtab.terraform.framework.encoding import read_dynamic
from trimtab.terraform.framework.ephemeral import Close, Ephemeral, Open, Renew
from trimtab.terraform.framework.function import ArgumentError, Function, Parameter
from trimtab.terraform.framework.offers import Offer, Offers, name_of
from trimtab.terraform.framework.resource_calls import MakeContext
from trimtab.terraform.framework.settling import settled
from trimtab.terraform.framework.shaping import Misfit, shaped
from trimtab.terraform.framework.trees import Config
from trimtab.terraform.framework.validation import given, validate
from trimtab.terraform.framework.validators import check
from trimtab.terraform.protocol.contract import InvalidRequest

if TYPE_CHECKING:
    from datetime import datetime


class DataSourceCalls:
    def __init__(self, sources: Offers[DataSource], context: MakeContext) -> None:
        self._sources = sources
        self._context = context

    def validate(self, request: Message) -> Message:
        return _validated(self._sources[name_of(request)], request, self._context())

    def read(self, request: Message) -> Message:
        offer = self._sources[name_of(request)]
        config = received_object(request, "config", offer.type)
        context = self._context(request, config)
        answer: Message = {}
        with guarded(context):
            state = offer.thing.read(ReadData(Config(config), context))
            answer["state"] = _result(offer, config, state.value, context)
        if context.diagnostics.failed():
            answer = {}
        if context.deferred is not None:
            answer["deferred"] = {"reason": context.deferred}
        return answer | {"diagnostics": told(context, offer)}


class EphemeralCalls:
    def __init__(self, ephemerals: Offers[Ephemeral], context: MakeContext) -> None:
        self._ephemerals = ephemerals
        self._context = context

    def validate(self, request: Message) -> Message:
        return _validated(self._ephemerals[name_of(request)], request, self._context())

    def open(self, request: Message) -> Message:
        offer = self._ephemerals[name_of(request)]
        config = received_object(request, "config", offer.type)
        context = self._context(request, config)
        answer: Message = {}
        with guarded(context):
            opened = offer.thing.open(Open(Config(config), context))
            answer = {"private": private_bytes(opened.private), **_renewal(opened.renew_at)}
            answer["result"] = _result(offer, config, opened.value, context)
        if context.deferred is not None:
            answer["deferred"] = {"reason": context.deferred}
        return answer | {"diagnostics": told(context, offer)}

    def renew(self, request: Message) -> Message:
        offer = self._ephemerals[name_of(request)]
        context = self._context()
        answer: Message = {}
        with guarded(context):
            renewed = offer.thing.renew(Renew(private_of(request.get("private")), context))
            answer = {"private": private_bytes(renewed.private), **_renewal(renewed.renew_at)}
        return answer | {"diagnostics": told(context, offer)}

    def close(self, request: Message) -> Message:
        offer = self._ephemerals[name_of(request)]
        context = self._context()
        with guarded(context):
            offer.thing.close(Close(private_of(request.get("private")), context))
        return {"diagnostics": told(context, offer)}


class FunctionCalls:
    def __init__(self, functions: Mapping[str, Callable[[], Function]], context: MakeContext) -> None:
        self._functions = functions
        self._context = context

    def call(self, request: Message) -> Message:
        name = name_of(request, "name")
        if name not in self._functions:
            raise InvalidRequest(f"this provider has no function {name!r}")
        function = self._functions[name]()
        context = self._context()
        with guarded(context):
            try:
                arguments = _arguments(function, request.get("arguments", []))
                result = shaped(function.call(*arguments), function.returns)
            except ArgumentError as wrong:
                return {"error": {"text": wrong.text, "function_argument": wrong.index}}
            return {"result": sent(result, function.returns)}
        item = context.diagnostics.items[0]
        return {"error": {"text": f"{item.summary}: {item.detail}" if item.detail else item.summary}}


def _arguments(function: Function, messages: list[Message]) -> list[Any]:
    parameters = list(function.parameters)
    if len(messages) > len(parameters) and function.variadic is not None:
        parameters += [function.variadic] * (len(messages) - len(parameters))
    if len(messages) != len(parameters):
        raise InvalidRequest(f"{len(parameters)} arguments are needed, not {len(messages)}")
    return [_argument(at, parameter, messages[at]) for at, parameter in enumerate(parameters)]


def _argument(at: int, parameter: Parameter, message: Message) -> Any:
    try:
        value = read_dynamic(message, parameter.type)
    except Misfit as misfit:
        raise InvalidRequest(f"{parameter.name}: {misfit}") from None
    for where, rule, broken in check(parameter.validators, value):
        raise ArgumentError(at, f"{parameter.name}{where} {rule}{given(broken)}.")
    return value


def _validated(offer: Offer[Any], request: Message, context: Context) -> Message:
    config = received_object(request, "config", offer.type)
    with guarded(context):
        context.diagnostics.items += validate(offer.schema, offer.thing.config_validators, config)
        offer.thing.validate(Config(config), context)
    return {"diagnostics": told(context, offer)}


def _result(offer: Offer[Any], config: dict[str, Any], value: Mapping[str, Any], context: Context) -> Message:
    """What was read; what it does not speak of is as it was configured."""
    result = settled(offer.schema, fitted({**config, **value}, offer.type, "a result"))
    faults(context, "The provider returned an unknown value", unknown_faults(result))
    if context.diagnostics.failed():
        raise Failed("Nothing was read", f"The result of {offer.name} cannot be used.")
    return sent(result, offer.type)


def _renewal(at: datetime | None) -> Message:
    if at is None:
        return {}
    from datetime import UTC

    if at.tzinfo is None:
        raise Failed("The provider failed", "renew_at needs a time zone.")
    moment = at.astimezone(UTC)
    return {"renew_at": {"seconds": int(moment.timestamp()), "nanos": moment.microsecond * 1000}}
