"""Which code a fault of the transport gets."""

import errno
import socket
import ssl

import httpx
import pytest

from standby.events.vocabulary import Origin
from standby.hosts.providers.faults import read_fault
from standby.hosts.providers.values import Code


def caused(outer: Exception, *causes: Exception) -> Exception:
    """`outer`, raised from the first cause, that from the second, and so on."""
    inner = outer
    for cause in causes:
        inner.__cause__ = cause
        inner = cause
    return outer


def certificate(number: int, words: str) -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, f"certificate verify failed: {words}")
    error.verify_code, error.verify_message = number, words
    return error


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (
            caused(httpx.ConnectError("failed"), ConnectionRefusedError(errno.ECONNREFUSED, "refused")),
            Code.REFUSED,
        ),
        (caused(httpx.ConnectError("failed"), OSError(errno.EHOSTUNREACH, "no route")), "EHOSTUNREACH"),
        (caused(httpx.ConnectError("x"), socket.gaierror(socket.EAI_NONAME, "unknown name")), Code.NOT_FOUND),
        (caused(httpx.ConnectError("x"), socket.gaierror(socket.EAI_AGAIN, "try again")), "EAI_AGAIN"),
        (caused(httpx.ConnectError("x"), certificate(10, "certificate has expired")), "CERT_HAS_EXPIRED"),
        (caused(httpx.ConnectError("x"), certificate(18, "self-signed")), "DEPTH_ZERO_SELF_SIGNED_CERT"),
        (caused(httpx.ConnectError("x"), certificate(99, "odd")), Code.CERTIFICATE),
        (caused(httpx.ConnectError("x"), ssl.SSLError(1, "wrong version number")), Code.TLS),
        (httpx.ReadError("broken"), Code.RESET),
        (caused(httpx.ReadError(""), OSError(errno.ENETRESET, "net")), "ENETRESET"),
        (httpx.RemoteProtocolError("peer closed connection"), Code.RESET),
        (httpx.ReadTimeout("slow"), Code.TIMED_OUT),
        (httpx.ConnectError("who knows"), Code.NETWORK),
        (RuntimeError("unforeseen"), Code.NETWORK),
    ],
)
def test_the_innermost_word_counts(error: Exception, code: str) -> None:
    fault = read_fault(error)
    assert fault.code == code
    assert fault.origin is Origin.TRANSPORT
    assert fault.error_type == type(error).__name__


def test_groups_of_errors_are_searched() -> None:
    tries = [ConnectionRefusedError(errno.ECONNREFUSED, "v6"), ConnectionRefusedError(errno.ECONNREFUSED, "v4")]
    error = caused(httpx.ConnectError("All attempts failed"), OSError("both"), ExceptionGroup("tries", tries))
    assert read_fault(error).code == Code.REFUSED


def test_a_circle_of_causes_ends() -> None:
    one, two = ValueError("one"), ValueError("two")
    one.__cause__, two.__cause__ = two, one
    assert read_fault(one).code == Code.NETWORK


def test_the_words_of_the_cause_are_kept() -> None:
    error = caused(httpx.ConnectError("failed"), certificate(10, "certificate has expired"))
    assert "certificate has expired" in read_fault(error).message


@pytest.mark.parametrize(
    "error", [httpx.UnsupportedProtocol("ftp"), httpx.LocalProtocolError("bad header"), httpx.InvalidURL("bad")]
)
def test_what_never_left_this_host_is_local(error: Exception) -> None:
    fault = read_fault(error)
    assert (fault.code, fault.origin) == (Code.BAD_REQUEST, Origin.LOCAL)


def test_a_body_that_cannot_be_decoded_is_malformed() -> None:
    assert read_fault(httpx.DecodingError("gzip")).code == Code.MALFORMED
