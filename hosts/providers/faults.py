"""Reading a fault of the transport: which of the known codes it is, and in whose words.

Only names are given here, never a class: an operating system's code or ours, and the text of the
exception. The chain of causes is walked, since the layers above a socket wrap its error, some of
them in groups (one error for each address that was tried).
"""

import errno
import socket
import ssl
from collections.abc import Iterator
from typing import Final, NamedTuple

import httpx

from standby.events.vocabulary import Origin
from standby.hosts.providers.values import Code

# Numbers of OpenSSL's verification errors (x509_vfy.h), by the names that other clients use for
# them.
_CERTIFICATE_CODES: Final = {
    9: "CERT_NOT_YET_VALID",
    10: "CERT_HAS_EXPIRED",
    18: "DEPTH_ZERO_SELF_SIGNED_CERT",
    19: "SELF_SIGNED_CERT_IN_CHAIN",
    20: "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
    21: "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
    62: "ERR_TLS_CERT_ALTNAME_INVALID",
}

_CHAIN_MAX: Final = 16


class Fault(NamedTuple):
    """What is said about a call that the transport ended."""

    code: str
    message: str
    error_type: str
    origin: Origin


def read_fault(error: Exception) -> Fault:
    """The fault behind an exception of the HTTP client or of the socket below it."""
    name = type(error).__name__
    message = str(error) or name
    if isinstance(error, httpx.UnsupportedProtocol | httpx.LocalProtocolError | httpx.InvalidURL):
        return Fault(Code.BAD_REQUEST, message, name, Origin.LOCAL)
    if isinstance(error, httpx.DecodingError):
        return Fault(Code.MALFORMED, message, name, Origin.TRANSPORT)
    causes = list(_causes(error))
    code = next((code for cause in causes if (code := _code(cause))), Code.NETWORK)
    detail = next((str(c) for c in causes if isinstance(c, OSError) and str(c)), "")
    if detail and detail not in message:
        message = f"{message}: {detail}"
    return Fault(code, message, name, Origin.TRANSPORT)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The exception and what lies below it, innermost errors of groups included, at most 16."""
    waiting: list[BaseException] = [error]
    seen: set[int] = set()
    while waiting and len(seen) < _CHAIN_MAX:
        cause = waiting.pop(0)
        if id(cause) in seen:
            continue
        seen.add(id(cause))
        yield cause
        if isinstance(cause, BaseExceptionGroup):
            waiting.extend(cause.exceptions)
        waiting.extend(c for c in (cause.__cause__, cause.__context__) if c is not None)


def _code(cause: BaseException) -> str:
    match cause:
        case ssl.SSLCertVerificationError():
            return _CERTIFICATE_CODES.get(cause.verify_code, Code.CERTIFICATE)
        case ssl.SSLError():
            return Code.TLS
        case socket.gaierror():
            return "EAI_AGAIN" if cause.errno == socket.EAI_AGAIN else Code.NOT_FOUND
        case OSError(errno=int(number)) if number in errno.errorcode:
            return errno.errorcode[number]
        case TimeoutError() | httpx.TimeoutException():
            return Code.TIMED_OUT
        case httpx.RemoteProtocolError() | httpx.ReadError():
            # Asked after its causes only if none of them says more.
            return "" if _says_more(cause) else Code.RESET
        case _:
            return ""


def _says_more(error: BaseException) -> bool:
    return any(cause is not error and isinstance(cause, OSError) for cause in _causes(error))
