"""Two machines on this one."""

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from trimtab.lab import network
from trimtab.lab.network import Bed, available

pytestmark = pytest.mark.skipif(bool(available()), reason=available() or "-")

ANSWER = """
import socket
server = socket.create_server(("0.0.0.0", 4000), backlog=64)
print("ready", flush=True)
while True:
    connection, _ = server.accept()
    connection.sendall(connection.getsockname()[0].encode())
    connection.close()
"""


@pytest.fixture(scope="module")
def bed():
    with Bed() as bed:
        server = bed.b.popen([sys.executable, "-c", ANSWER], stdout=-1)
        assert server.stdout.readline() == b"ready\n"
        yield bed
        server.kill()
        server.communicate()


def in_thread(bed, function):
    """What a function gives in A."""
    found = []

    def run():
        bed.a.enter()
        try:
            found.append(function())
        except OSError as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


def ask(address):
    def connect():
        with socket.create_connection((address, 4000), timeout=0.3) as connection:
            return connection.recv(100).decode()

    return connect


@pytest.mark.parametrize("address", ["10.77.0.0", "10.77.3.4", "10.77.15.255"])
def test_one_server_answers_as_every_live_address(bed, address):
    assert in_thread(bed, ask(address)) == address


@pytest.mark.parametrize("address", ["10.77.16.0", "10.77.255.255"])
def test_nobody_says_anything_for_the_others(bed, address):
    assert isinstance(in_thread(bed, ask(address)), TimeoutError)


def test_there_is_no_way_out(bed):
    for space in (bed.a, bed.b):
        assert "default" not in space.run("ip", "route")
        assert "default" not in space.run("ip", "-6", "route")


def test_only_the_thread_that_enters_goes_there(bed):
    here = os.readlink("/proc/thread-self/ns/net")
    assert in_thread(bed, lambda: os.readlink("/proc/thread-self/ns/net")) != here
    assert os.readlink("/proc/thread-self/ns/net") == here


def test_two_beds_do_not_meet(bed):
    with Bed() as other:
        assert isinstance(in_thread(other, ask("10.77.0.1")), ConnectionRefusedError)


def test_a_closed_bed_leaves_nothing():
    with Bed() as bed:
        names = {bed.a.name, bed.b.name}
        assert names <= set(os.listdir("/run/netns"))
    assert not names & set(os.listdir("/run/netns"))


def test_a_bed_of_a_killed_process_is_removed_by_the_next():
    script = """
import os, signal
from trimtab.lab.network import Bed
bed = Bed()
print(bed.a.name, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    left = ran.stdout.strip()
    assert left in os.listdir("/run/netns")
    with Bed():
        assert left not in os.listdir("/run/netns")


def test_without_the_command_it_says_what_to_install(monkeypatch):
    monkeypatch.setenv("PATH", str(Path(network.__file__).parent))
    assert "iproute2" in available()
    with pytest.raises(RuntimeError, match="iproute2"):
        Bed()
