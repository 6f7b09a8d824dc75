"""What codes and texts of errors mean: a table. Codes are ARM's, which others use too; they are compared in lower case.

A row counts when the status and the verb are among those that it names; without them it counts for all. Of two rows for
one code the first that counts is taken.
"""

from __future__ import annotations

import re

import msgspec

from trimtab.systems.rest.calling.contract import ErrorClass

WRITES = ("create", "update", "patch")
OTHERS = ("read", "delete", "list", "poll", "join", "export")


class Meaning(msgspec.Struct, frozen=True):
    kind: ErrorClass
    verbs: tuple[str, ...] = ()
    statuses: tuple[int, ...] = ()

    def fits(self, status: int, verb: str) -> bool:
        return (not self.verbs or verb in self.verbs) and (not self.statuses or status in self.statuses)


_NOT_READY = Meaning(ErrorClass.DEPENDENCY, WRITES)

_CODES: tuple[tuple[Meaning, str], ...] = (
    # Something else is not there or not ready yet, under a 400 as often as under a 404 or a 409.
    (
        _NOT_READY,
        """ManagedEnvironmentNotProvisioned PrincipalNotFound FailedIdentityOperation
        StorageProvisioningStateNotSucceeded StorageAccountIsNotProvisioned ReferencedResourceNotProvisioned
        InvalidResourceReference MissingSubscriptionRegistration SubscriptionNotRegistered
        InvalidSubscriptionRegistrationState MissingRegistrationForLocation LinkedAuthorizationFailed
        ResourceGroupNotFound ParentResourceNotFound ResourceGroupBeingDeleted""",
    ),
    (Meaning(ErrorClass.DEPENDENCY, WRITES, (400,)), "ResourceNotFound NotFound"),
    # A 429 of one resource that waits for another, and no word of too many requests.
    (_NOT_READY, "RetryableError RetryableErrorDueToAnotherOperation"),
    (Meaning(ErrorClass.TRANSIENT, OTHERS), "RetryableError RetryableErrorDueToAnotherOperation"),
    (Meaning(ErrorClass.GONE, OTHERS), "ResourceGroupNotFound ParentResourceNotFound ResourceNotFound"),
    (Meaning(ErrorClass.GONE, OTHERS, (404, 410)), "NotFound"),
    (Meaning(ErrorClass.GONE, ("read", "delete")), "ResourceGroupBeingDeleted DeletedVaultNotFound"),
    (Meaning(ErrorClass.DEPENDENCY, ("delete",)), "InUseSubnetCannotBeDeleted NestedResourcesExist"),
    # Someone else is at it.
    (
        Meaning(ErrorClass.CONFLICT),
        """AnotherOperationInProgress ConflictingConcurrentWriteNotAllowed OperationPreempted NotLatestOperation
        OperationInProgress ConflictingServerOperation""",
    ),
    (Meaning(ErrorClass.PRECONDITION), "EtagMismatch PreconditionFailed ConditionNotMet"),
    (
        Meaning(ErrorClass.THROTTLED),
        "TooManyRequests OperationThrottled SubscriptionRequestsThrottled ResourceRequestsThrottled",
    ),
    (Meaning(ErrorClass.EXISTS, ("create",)), "ResourceExists AlreadyExists ResourceAlreadyExists EntityAlreadyExists"),
    (Meaning(ErrorClass.EXISTS, ("create", "update")), "RoleAssignmentExists"),
    (
        Meaning(ErrorClass.IMMUTABLE, WRITES),
        "PropertyChangeNotAllowed ImmutableProperty InvalidResourceLocation InvalidResourceGroupLocation",
    ),
    (
        Meaning(ErrorClass.AUTH),
        """AuthenticationFailed AuthorizationFailed InvalidAuthenticationToken ExpiredAuthenticationToken
        InvalidAuthenticationTokenTenant""",
    ),
    # The spec must change.
    (
        Meaning(ErrorClass.TERMINAL, WRITES),
        """BadRequestFormat InvalidRequestFormat InvalidRequestContent InvalidTemplate InvalidParameter
        InvalidParameterValue InvalidValuesForRequestParameters InvalidResourceType InvalidApiVersionParameter
        LocationRequired LocationNotAvailableForResourceType MissingRequiredParameter MethodNotAllowed
        NoRegisteredProviderFound PasswordTooLong PrivateIPAddressInReservedRange PrivateIPAddressNotInSubnet
        PublicIpForGatewayIsRequired ReservedResourceName SkuNotAvailable AccountNameInvalid""",
    ),
    # Someone may allow it one day: it is tried again, seldom.
    (
        Meaning(ErrorClass.UNKNOWN),
        """RequestDisallowedByPolicy ScopeLocked QuotaExceeded ResourceQuotaExceeded RegionIsOfferRestricted
        SubscriptionNotFound""",
    ),
    # The service's own trouble.
    (
        Meaning(ErrorClass.TRANSIENT),
        """InternalServerError InternalError ServiceUnavailable GatewayTimeout ServerTimeout AllocationFailed
        OverconstrainedAllocationRequest ZonalAllocationFailed""",
    ),
)

BY_CODE: dict[str, tuple[Meaning, ...]] = {}
for _meaning, _names in _CODES:
    for _name in _names.lower().split():
        BY_CODE[_name] = (*BY_CODE.get(_name, ()), _meaning)

_EXISTS = r"already (?:exists|defined|in use)|duplicate (?:key|entry|name)"
_IMMUTABLE = (
    r"\bimmutable\b|read-?only after|change is not allowed"
    r"|(?:can ?not|can't|may not|must not) be (?:changed|modified|updated|altered)"
    r"|(?:changing|changes? to|updating|modifying) (?:the )?(?:property|field|value).{0,80}?"
    r"not (?:allowed|permitted|supported)"
)
_WAIT = (
    r"\bnot (?:yet )?(?:been )?(?:provisioned|ready|in (?:a )?succeeded state)"
    r"|still (?:being )?(?:creat|provision)|operation (?:is )?in progress"
)
_FIRST = r"can ?not (?:be )?delete|in use|still (?:has|have|contains)|not empty|referenced by"
_AGAIN = r"intermittent|temporar(?:y|ily)|(?:please )?(?:try|retry) (?:again|later)"
_SLOWER = r"too many requests|rate limit|throttl"

BY_MESSAGE: tuple[tuple[re.Pattern[str], Meaning], ...] = (
    (re.compile(_EXISTS, re.IGNORECASE), Meaning(ErrorClass.EXISTS, ("create",), (400, 409, 422, 500))),
    (re.compile(_IMMUTABLE, re.IGNORECASE), Meaning(ErrorClass.IMMUTABLE, WRITES, (400, 409, 422))),
    (re.compile(r"\betag\b|if-match", re.IGNORECASE), Meaning(ErrorClass.PRECONDITION, (), (409,))),
    (re.compile(_WAIT, re.IGNORECASE), Meaning(ErrorClass.DEPENDENCY, WRITES, (400, 404, 422))),
    (re.compile(_FIRST, re.IGNORECASE), Meaning(ErrorClass.DEPENDENCY, ("delete",), (400, 409, 422))),
    (re.compile(_AGAIN, re.IGNORECASE), Meaning(ErrorClass.TRANSIENT, (), (400,))),
    (re.compile(_SLOWER, re.IGNORECASE), Meaning(ErrorClass.THROTTLED, (), (403, 503))),
)
