# SPDX-License-Identifier: Apache-2.0
"""A real SMTP server (aiosmtpd) on a free loopback port that keeps what it gets.

    with SmtpServer(refuses={"gone@example.org"}) as server:
        ...                     # send to server.url
        server.mails            # in the order they came

Attributes that may be changed at any time:

    refuses      addresses that are answered 550
    delays       addresses that are answered 451: try again later
    is_down      every recipient is answered 421: the server is about to go
"""

import asyncio
import email
import email.policy
import threading

from aiosmtpd.smtp import SMTP, AuthResult


class Mail:
    def __init__(self, session, envelope, is_behind_tls):
        self.sender = envelope.mail_from
        self.recipients = list(envelope.rcpt_tos)
        self.raw = bytes(envelope.content)
        self.is_encrypted = is_behind_tls or session.ssl is not None
        self.user = session.auth_data if session.authenticated else None

    @property
    def message(self):
        return email.message_from_bytes(self.raw, policy=email.policy.default)

    @property
    def text(self):
        return self.message.get_content()


class SmtpServer:
    """certificate: a Certificate. mode: "plain", "starttls" (offered), "smtps" (TLS from the start).
    login: (user, password) that is wanted before any mail; over TLS only."""

    def __init__(self, mode="plain", certificate=None, login=None, refuses=(), delays=()):
        self.mode, self.certificate, self.login = mode, certificate, login
        self.refuses, self.delays, self.is_down = set(refuses), set(delays), False
        self.mails = []
        self.sessions = 0
        self.loop = asyncio.new_event_loop()
        self.server = self.loop.run_until_complete(self._listen())
        self.port = self.server.sockets[0].getsockname()[1]
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    @property
    def url(self):
        return "%s://127.0.0.1:%d" % ("smtps" if self.mode == "smtps" else "smtp", self.port)

    def close(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)
        self.loop.run_until_complete(self._end())
        self.loop.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    # The server's side.

    async def _end(self):
        self.server.close()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _listen(self):
        return await self.loop.create_server(
            self._protocol, "127.0.0.1", 0, ssl=self.certificate.context() if self.mode == "smtps" else None
        )

    def _protocol(self):
        self.sessions += 1
        return SMTP(
            self,
            hostname="mail.test",
            loop=self.loop,
            tls_context=self.certificate.context() if self.mode == "starttls" else None,
            authenticator=self._authenticate if self.login else None,
            auth_required=bool(self.login),
            auth_require_tls=self.mode != "smtps",  # where it does not know that it is behind TLS
        )

    def _authenticate(self, server, session, envelope, mechanism, data):
        given = (data.login.decode(), data.password.decode())
        return AuthResult(success=given == self.login, auth_data=given[0], handled=False)

    async def handle_RCPT(self, server, session, envelope, address, options):
        if self.is_down:
            return "421 4.3.2 going down"
        if address in self.refuses:
            return "550 5.1.1 no such mailbox\tas <%s>" % address
        if address in self.delays:
            return "451 4.3.0 try again later"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        self.mails.append(Mail(session, envelope, self.mode == "smtps"))
        return "250 taken"
