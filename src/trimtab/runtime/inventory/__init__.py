"""A set of objects applied for an owner, and pruned: `plan` is pure, `record` is what survives, `keeper` acts."""

from trimtab.runtime.inventory.keeper import Inventory, InventoryFailed
from trimtab.runtime.inventory.plan import Plan
from trimtab.runtime.inventory.record import InventoryTooLarge

__all__ = ["Inventory", "InventoryFailed", "InventoryTooLarge", "Plan"]
