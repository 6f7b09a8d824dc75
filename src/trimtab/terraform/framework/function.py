"""Functions: pure computations that a configuration calls as `provider::<name>::<function>(…)`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from trimtab.terraform.framework.types import Type
from trimtab.terraform.framework.validators import Validator


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    type: Type
    description: str = ""
    nullable: bool = False
    """Whether the body wants to see null; else Terraform refuses it."""
    unknown: bool = False
    """Whether the body wants to see UNKNOWN; else the result is unknown and the body is not called."""
    validators: tuple[Validator, ...] = ()


class ArgumentError(Exception):
    """This argument is wrong; Terraform points at it."""

    def __init__(self, index: int, text: str) -> None:
        super().__init__(text)
        self.index = index
        self.text = text


class Function(ABC):
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    variadic: ClassVar[Parameter | None] = None
    """What all further arguments are; the body gets each as an argument of its own."""
    returns: ClassVar[Type]
    summary: ClassVar[str] = ""
    description: ClassVar[str] = ""
    deprecated: ClassVar[str] = ""

    @abstractmethod
    def call(self, *arguments: Any) -> Any:
        """May raise ArgumentError(index, …), or Failed."""
