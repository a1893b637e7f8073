"""Nobody but the person who started it gets an answer from the page."""

from __future__ import annotations

import pytest
from tests.app.conftest import ORIGIN, PORT, TOKEN

PLACES = ["/", "/static/app.js", "/results/people-result/report"]


@pytest.mark.parametrize("place", PLACES)
def test_nothing_is_shown_without_the_token(stranger, place) -> None:
    answer = stranger.get(place)
    assert answer.status_code == 403
    assert "printed" in answer.text


@pytest.mark.parametrize("token", ["", "x", TOKEN[:-1], TOKEN + "x", "ü"])
def test_a_wrong_token_opens_nothing(stranger, token) -> None:
    answer = stranger.get("/", params={"token": token})
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


def test_the_token_becomes_a_cookie_and_leaves_the_address(stranger) -> None:
    answer = stranger.get("/", params={"token": TOKEN})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert TOKEN not in cookie
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert stranger.get("/").status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost", f"evil.example:{PORT}", "127.0.0.1:1", ""]
)
def test_another_host_is_refused(client, host) -> None:
    assert client.get("/", headers={"host": host}).status_code == 403


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", f"https://127.0.0.1:{PORT}", ORIGIN + "0"]
)
def test_another_origin_is_refused(client, origin) -> None:
    headers = {"origin": origin}
    assert client.get("/", headers=headers).status_code == 403
    assert client.post("/api/start", json={}, headers=headers).status_code == 403


def test_a_request_that_changes_something_names_its_origin(client) -> None:
    del client.headers["origin"]
    assert client.get("/").status_code == 200
    assert client.post("/api/start", json={}).status_code == 403


def test_another_site_is_refused_even_without_an_origin(client) -> None:
    del client.headers["origin"]
    for site in ("cross-site", "same-site"):
        assert client.get("/", headers={"sec-fetch-site": site}).status_code == 403


@pytest.mark.parametrize("place", [*PLACES[:2], PLACES[2], "/no-such-place"])
def test_every_answer_is_marked(client, place) -> None:
    headers = client.get(place).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert "frame-ancestors" in headers["content-security-policy"]


def test_no_script_runs_that_is_not_a_file_of_ours(client) -> None:
    answer = client.get("/")
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self';" in policy
    assert "unsafe-inline" not in policy
    assert "<script>" not in answer.text
    assert " style=" not in answer.text
    assert "http" not in answer.text


def test_a_report_runs_without_any_rights(client) -> None:
    answer = client.get("/results/people-result/report")
    policy = answer.headers["content-security-policy"]
    assert "sandbox allow-scripts" in policy
    assert "allow-same-origin" not in policy
    assert answer.headers["content-type"].startswith("text/html")
