"""Who may ask the server: the page itself, opened by the person who started it."""

from __future__ import annotations

import secrets
from typing import Any

from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

HOST = "127.0.0.1"
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src "
    "'self'; img-src 'self' data:; connect-src 'self'; frame-src 'self'; base-uri "
    "'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Guard(BaseHTTPMiddleware):
    """Lets requests of the page through, and marks all answers.

    The host must be this machine by number, so that no other name leads here; the
    origin that of the page, so that no other page asks; and the cookie the one that
    was exchanged for the token of the address.
    """

    def __init__(self, app: Any, port: int, token: str) -> None:
        super().__init__(app)
        self.token, self.host = token, f"{HOST}:{port}"
        self.name, self.secret = f"mdec-{port}", secrets.token_urlsafe(32)

    async def dispatch(self, request: Request, call_next: Any) -> Response:
        """Answer a request, or refuse it."""
        answer: Response = self._refuse(request) or await call_next(request)
        for name, value in _HEADERS.items():
            answer.headers.setdefault(name, value)
        return answer

    def _refuse(self, request: Request) -> Response | None:
        """Return the answer to a stranger, or to one who brings the token."""
        origin, site = (request.headers.get(n) for n in ("origin", "sec-fetch-site"))
        asked = origin is not None or request.method not in ("GET", "HEAD")
        if (
            request.headers.getlist("host") != [self.host]
            or (asked and origin != f"http://{self.host}")
            or site not in (None, "none", "same-origin")
        ):
            return PlainTextResponse("This page answers only its own requests.\n", 403)
        given = request.query_params.get("token", "")
        if request.url.path == "/" and _equal(given, self.token):
            answer = RedirectResponse("/", 303)
            answer.set_cookie(self.name, self.secret, httponly=True, samesite="strict")
            return answer
        if _equal(request.cookies.get(self.name, ""), self.secret):
            return None
        words = "Open the address that mdec app has printed in its terminal.\n"
        return PlainTextResponse(words, 403)


def _equal(given: str, secret: str) -> bool:
    return secrets.compare_digest(given.encode(), secret.encode())
