"""Probes, ends and restarts of real processes."""

from __future__ import annotations

from tests.systems.local.pods_kit import (
    PORT,
    SERVER,
    Bench,
    app,
    container,
    deployment,
    is_ready,
    pid_of,
    python,
    ready_probe,
    sicken,
)


async def test_a_pod_that_turns_sick_is_not_ready_and_keeps_its_process(bench: Bench) -> None:
    probe = ready_probe(httpGet={"path": "/health", "port": "web"}, failureThreshold=1)
    ports = [{"name": "web", "containerPort": PORT}]
    async with bench.running():
        await bench.create(deployment("web", container(readinessProbe=probe, ports=ports)))
        (pod,) = await bench.until(lambda pods: pods and is_ready(pods[0]))
        sicken(bench, pod)
        (sick,) = await bench.until(lambda pods: not is_ready(pods[0]))
        assert pid_of(sick) == pid_of(pod)
        sicken(bench, pod, False)
        (well,) = await bench.until(lambda pods: is_ready(pods[0]))
        assert app(well)["restartCount"] == 0


async def test_a_failed_liveness_probe_ends_the_process_and_another_is_started(bench: Bench) -> None:
    probe = ready_probe(httpGet={"path": "/health", "port": PORT}, failureThreshold=1)
    slow = {**probe, "initialDelaySeconds": 1}
    async with bench.running():
        await bench.create(deployment("web", container(livenessProbe=slow, readinessProbe=ready_probe())))
        (pod,) = await bench.until(lambda pods: pods and is_ready(pods[0]))
        sicken(bench, pod)
        (again,) = await bench.until(lambda pods: app(pods[0])["restartCount"] == 1 and pid_of(pods[0]))
        assert pid_of(again) != pid_of(pod)
        last = app(again)["lastState"]["terminated"]
        assert last["exitCode"] == 0
        assert "liveness" in last["message"]
        assert again["status"]["podIP"] == pod["status"]["podIP"]


async def test_other_probes_wait_for_the_startup_probe(bench: Bench) -> None:
    late = f"import time, os; time.sleep(0.4)\n{SERVER}"
    startup = {"tcpSocket": {"port": PORT}, "periodSeconds": 1, "failureThreshold": 30}
    liveness = {"tcpSocket": {"port": PORT}, "failureThreshold": 1, "periodSeconds": 1}
    async with bench.running():
        await bench.create(deployment("web", container(late, startupProbe=startup, livenessProbe=liveness)))
        (pod,) = await bench.until(lambda pods: pods and pid_of(pods[0]))
        assert app(pod)["started"] is False
        (pod,) = await bench.until(lambda pods: is_ready(pods[0]))
        assert app(pod)["started"] is True
        assert app(pod)["restartCount"] == 0


async def test_a_command_decides_about_readiness(bench: Bench) -> None:
    check = "import os, sys; sys.exit(os.environ['VERSION'] != 'v1' or not os.path.exists('ready'))"
    probe = {"exec": {"command": python(check)}, "periodSeconds": 1}
    serve = "import time; open('ready', 'w').close(); time.sleep(60)"
    env = [{"name": "VERSION", "value": "v1"}]
    async with bench.running():
        await bench.create(deployment("web", container(serve, env=env, readinessProbe=probe)))
        await bench.until(lambda pods: pods and is_ready(pods[0]))


async def test_a_process_that_ends_is_started_again_after_a_growing_pause(bench: Bench) -> None:
    async with bench.running():
        await bench.create(deployment("web", container("import sys; print('no luck'); sys.exit(3)")))
        (pod,) = await bench.until(
            lambda pods: (
                pods
                and app(pods[0]).get("restartCount") == 1
                and "CrashLoopBackOff" in str(app(pods[0])["state"].get("waiting"))
            )
        )
        assert "after 2 s" in app(pod)["state"]["waiting"]["message"]
        assert app(pod)["lastState"]["terminated"]["exitCode"] == 3
        assert app(pod)["lastState"]["terminated"]["reason"] == "Error"
        assert pod["status"]["phase"] == "Running"
        assert not is_ready(pod)
        log = bench.pods_folder / pod["metadata"]["uid"] / "app.log"
        assert log.read_text() == "no luck\n" * 2


async def test_a_program_that_is_not_there_says_so(bench: Bench) -> None:
    async with bench.running():
        await bench.create(deployment("web", container(command=["/no/such/program"])))
        (pod,) = await bench.until(lambda pods: pods and app(pods[0]).get("lastState"))
        last = app(pod)["lastState"]["terminated"]
        assert (last["exitCode"], last["reason"]) == (128, "StartError")
        assert "/no/such/program" in last["message"]


async def test_init_containers_run_first_one_by_one(bench: Bench) -> None:
    first = {"name": "one", "image": "none", "command": python("open('steps', 'a').write('one ')")}
    second = {"name": "two", "image": "none", "command": python("open('steps', 'a').write('two ')")}
    main = container("import sys, time; sys.stdout.write(open('steps').read()); sys.stdout.flush(); time.sleep(60)")
    async with bench.running():
        await bench.create(deployment("web", main, pod={"initContainers": [first, second]}))
        (pod,) = await bench.until(lambda pods: pods and is_ready(pods[0]))
        statuses = pod["status"]["initContainerStatuses"]
        assert [each["state"]["terminated"]["reason"] for each in statuses] == ["Completed", "Completed"]
        assert (bench.pods_folder / pod["metadata"]["uid"] / "work" / "steps").read_text() == "one two "
