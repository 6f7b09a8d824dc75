"""A provider of the framework as a server of the protocol: one method of the protocol, one function here.

Safe for many threads. Nothing is built before it is asked for: with a precomputed schema a provider answers its first calls
without making a single resource.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from trimtab.terraform.framework import logs
from trimtab.terraform.framework.calls import Message, guarded, received_object, told
from trimtab.terraform.framework.context import Context
from trimtab.terraform.framework.describing import function_message, identity_message, schema_message
from trimtab.terraform.framework.diagnostics import ERROR, Diagnostic
from trimtab.terraform.framework.offers import Offers, offer
from trimtab.terraform.framework.provider import Provider
from trimtab.terraform.framework.reading_calls import DataSourceCalls, EphemeralCalls, FunctionCalls
from trimtab.terraform.framework.resource_calls import ResourceCalls
from trimtab.terraform.framework.schema import RESERVED_BY_PROVIDERS
from trimtab.terraform.framework.state_calls import StateCalls
from trimtab.terraform.framework.trees import Config
from trimtab.terraform.framework.validation import validate
from trimtab.terraform.protocol.contract import Encoded, InvalidRequest, Unimplemented

CAPABILITIES = {"plan_destroy": True, "get_provider_schema_optional": True, "move_resource_state": True}


class FrameworkServer:
    """`precomputed` is an encoded answer to GetProviderSchema; without it the answer is made of all schemas."""

    def __init__(self, provider: Provider, precomputed: bytes | None = None) -> None:
        self._provider = provider
        self._precomputed = precomputed
        self._client: Any = None
        self._lock = threading.Lock()
        self._cancelled = threading.Event()
        self._resources = Offers(provider.resources())
        self._data_sources = Offers(provider.data_sources())
        self._ephemerals = Offers(provider.ephemerals())
        self._methods = self._routes()

    def call(self, method: str, request: dict[str, Any]) -> dict[str, Any] | Encoded:
        handler = self._methods.get(method)
        if handler is None:
            raise Unimplemented(method)
        try:
            return handler(request)
        except (InvalidRequest, Unimplemented):
            raise
        except Exception as error:  # a schema that is wrong, a resource that cannot be made
            import traceback

            logs.log("error", "the provider failed", method=method, traceback=traceback.format_exc())
            if method == "CallFunction":
                return {"error": {"text": f"The provider failed: {error}"}}
            return {"diagnostics": [Diagnostic(ERROR, "The provider failed", str(error)).message()]}

    def stop(self) -> None:
        """Operations that run see `cancelled`; one that is started later, by a new command, does not."""
        with self._lock:
            self._cancelled.set()
            self._cancelled = threading.Event()

    def _routes(self) -> dict[str, Callable[[Message], Message | Encoded]]:
        resources = ResourceCalls(self._resources, self._context)
        states = StateCalls(self._resources, self._context)
        sources = DataSourceCalls(self._data_sources, self._context)
        ephemerals = EphemeralCalls(self._ephemerals, self._context)
        functions = FunctionCalls(self._provider.functions(), self._context)
        return {
            "GetMetadata": self._metadata,
            "GetProviderSchema": self._schema,
            "GetResourceIdentitySchemas": self._identities,
            "GetFunctions": self._functions,
            "ValidateProviderConfig": self._validate,
            "ConfigureProvider": self._configure,
            "StopProvider": self._stop,
            "ValidateResourceConfig": resources.validate,
            "PlanResourceChange": resources.plan,
            "ApplyResourceChange": resources.apply,
            "ReadResource": resources.read,
            "ImportResourceState": resources.import_state,
            "UpgradeResourceState": states.upgrade,
            "UpgradeResourceIdentity": states.upgrade_identity,
            "MoveResourceState": states.move,
            "ValidateDataResourceConfig": sources.validate,
            "ReadDataSource": sources.read,
            "ValidateEphemeralResourceConfig": ephemerals.validate,
            "OpenEphemeralResource": ephemerals.open,
            "RenewEphemeralResource": ephemerals.renew,
            "CloseEphemeralResource": ephemerals.close,
            "CallFunction": functions.call,
        }

    def _context(self, request: Message | None = None, value: dict[str, Any] | None = None) -> Context:
        """For one call. `value` is where the user's timeouts are."""
        timeouts = (value or {}).get("timeouts")
        capabilities = (request or {}).get("client_capabilities", {})
        return Context(
            client=self._client,
            cancelled=self._cancelled,
            log=logs.log,
            timeouts=timeouts if isinstance(timeouts, dict) else None,
            deferral_allowed=bool(capabilities.get("deferral_allowed")),
        )

    def _metadata(self, request: Message) -> Message:
        return {
            "server_capabilities": dict(CAPABILITIES),
            "resources": [{"type_name": name} for name in self._resources.names()],
            "data_sources": [{"type_name": name} for name in self._data_sources.names()],
            "ephemeral_resources": [{"type_name": name} for name in self._ephemerals.names()],
            "functions": [{"name": name} for name in sorted(self._provider.functions())],
        }

    def _schema(self, request: Message) -> Message | Encoded:
        if self._precomputed is not None:
            return Encoded(self._precomputed)
        context = self._context()
        answer: Message = {"server_capabilities": dict(CAPABILITIES)}
        with guarded(context):
            provider = offer("provider", self._provider, RESERVED_BY_PROVIDERS)
            answer["provider"] = schema_message(provider.schema)
            answer["resource_schemas"] = {item.name: schema_message(item.schema) for item in self._resources}
            answer["data_source_schemas"] = {item.name: schema_message(item.schema) for item in self._data_sources}
            answer["ephemeral_resource_schemas"] = {item.name: schema_message(item.schema) for item in self._ephemerals}
            answer["functions"] = self._functions(request)["functions"]
        return answer | {"diagnostics": told(context)}

    def _identities(self, request: Message) -> Message:
        schemas = {
            item.name: identity_message(item.thing.identity, item.thing.identity_version)
            for item in self._resources
            if item.thing.identity
        }
        return {"identity_schemas": schemas}

    def _functions(self, request: Message) -> Message:
        return {"functions": {name: function_message(make()) for name, make in self._provider.functions().items()}}

    def _validate(self, request: Message) -> Message:
        context = self._context()
        provider = offer("provider", self._provider, RESERVED_BY_PROVIDERS)
        config = received_object(request, "config", provider.type)
        with guarded(context):
            context.diagnostics.items += validate(provider.schema, self._provider.config_validators, config)
            self._provider.validate(Config(config), context)
        return {"diagnostics": told(context, provider)}

    def _configure(self, request: Message) -> Message:
        context = self._context(request)
        provider = offer("provider", self._provider, RESERVED_BY_PROVIDERS)
        config = received_object(request, "config", provider.type)
        with guarded(context):
            self._client = self._provider.configure(Config(config), context)
        return {"diagnostics": told(context, provider)}

    def _stop(self, request: Message) -> Message:
        self.stop()
        return {}
