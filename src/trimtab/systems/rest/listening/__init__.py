"""What services tell of changes: an HTTP receiver that wakes the objects of what changed.

listener   the door: who may tell, how much at once, and the handshakes
events     CloudEvents and Event Grid's own schema: from a body to the IDs of resources
finding    which objects stand for an ID, from caches that follow the server
waking     the annotation that makes an object's controller look; bursts become one
"""

from trimtab.systems.rest.listening.listener import Listener

__all__ = ["Listener"]
