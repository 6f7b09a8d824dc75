"""What a restore does with objects in which a server has its say: addresses of Services, requests for certificates."""

from typing import Any

from trimtab.cli.restore_plan import Act, address_of, name_of, plan, to_write, without_address

Document = dict[str, Any]


def service(address: str, port: int = 80) -> Document:
    spec = {"clusterIP": address, "clusterIPs": [address], "ports": [{"port": port}]}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "a", "uid": "1"},
        "spec": spec,
    }


def planned(archived: Document, *live: Document, overwrite: bool = False) -> tuple[Act, str]:
    known = {(archived["apiVersion"], archived["kind"])}
    [step] = plan([archived], {name_of(each): each for each in live}, known=known, overwrite=overwrite)
    return step.act, step.why


def test_a_service_that_is_gone_comes_back_with_its_address() -> None:
    assert planned(service("10.96.0.7"))[0] is Act.CREATE
    assert address_of(to_write(service("10.96.0.7"), {})) == "10.96.0.7"


def test_another_address_is_no_difference_since_it_cannot_be_changed() -> None:
    assert planned(service("10.96.0.7"), service("10.96.0.8"))[0] is Act.SAME
    assert planned(service("10.96.0.7"), service("10.96.0.8", port=81)) == (
        Act.CONFLICT,
        "spec is another on the server",
    )


def test_an_address_is_taken_off_and_a_service_without_one_stays_so() -> None:
    assert without_address(service("10.96.0.7"))["spec"] == {"ports": [{"port": 80}]}
    headless = service("None")
    assert without_address(headless) is headless


def test_requests_for_certificates_are_left_out() -> None:
    request = {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": "alice", "uid": "2"},
        "spec": {"username": "alice"},
    }
    assert planned(request)[0] is Act.LEAVE
