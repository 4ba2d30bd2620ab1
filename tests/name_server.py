"""A name server on a loopback address, at the only port of which names are looked up."""

import contextlib
import socket
import threading

import dns.message
import dns.rcode
import dns.rrset
from dns.asyncresolver import Resolver

from retainer.outbound import names

TTL = 60


class NameServer:
    """Answers with the addresses that `find` returns for a name; without any there is no such name, None is silence."""

    def __init__(self, monkeypatch, find):
        self.find = find
        self.asked = []
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.resolver = Resolver(configure=False)
        self.resolver.nameservers, self.resolver.port = ["127.0.0.1"], self.socket.getsockname()[1]
        monkeypatch.setattr(names, "Resolver", lambda *_, **__: self.resolver)
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        with contextlib.suppress(OSError):
            while data := (received := self.socket.recvfrom(4096))[0]:
                client = received[1]
                query = dns.message.from_wire(data)
                (question,) = query.question
                name, kind = question.name.to_text(omit_final_dot=True), question.rdtype.name
                self.asked.append((name, kind))
                addresses = self.find(name, kind)
                if addresses is None:
                    continue
                answer = dns.message.make_response(query)
                if not addresses:
                    answer.set_rcode(dns.rcode.NXDOMAIN)
                of_kind = [each for each in addresses if (":" in each) == (kind == "AAAA")]
                if of_kind:
                    answer.answer.append(dns.rrset.from_text(question.name, TTL, "IN", kind, *of_kind))
                self.socket.sendto(answer.to_wire(), client)

    def close(self):
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)  # which wakes the thread
        self.socket.close()
