"""What short scripts send, and how they end."""

import os
import socket
import subprocess
import sys
import textwrap
import time
import unittest

from peer import Peer


def run(script, url, **environment):
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "ELASTIC_"))}
    environment = {**clean, "OTEL_EXPORTER_OTLP_ENDPOINT": url, **environment}
    arguments = [sys.executable, "-c", textwrap.dedent(script)]
    return subprocess.run(arguments, env=environment, capture_output=True, text=True, timeout=300)


class Exit(unittest.TestCase):
    def arrives(self, script, bodies):
        peer = Peer()
        said = run(script, peer.url)
        self.assertEqual((said.returncode, said.stderr), (0, ""), said.stdout)
        self.assertEqual(sorted(log.body.string_value for log in peer.logs), sorted(bodies))

    def test_a_script_need_not_say_that_it_ends(self):
        self.arrives(
            """
            from tidegate_sender import Sender
            sender = Sender(flush_interval=60, exit_timeout=60)
            sender.log("the only one")
            """,
            ["the only one"],
        )

    def test_a_sender_that_nobody_holds_any_more_is_seen_off_too(self):
        self.arrives(
            """
            from tidegate_sender import Sender
            def main():
                Sender(flush_interval=60, exit_timeout=60).log("from a function")
            main()
            """,
            ["from a function"],
        )

    def test_records_of_logging_arrive_also_those_of_exit_handlers(self):
        self.arrives(
            """
            import atexit, logging
            atexit.register(lambda: logging.warning("last words"))
            from tidegate_sender import Sender
            from tidegate_sender.logging import Handler
            logging.basicConfig(format="%(message)s", handlers=[Handler(Sender(flush_interval=60, exit_timeout=60))])
            logging.warning("first words")
            """,
            ["first words", "last words"],
        )

    def test_an_error_that_ends_the_script_does_not_lose_what_led_to_it(self):
        peer = Peer()
        said = run(
            """
            from tidegate_sender import Sender
            sender = Sender(flush_interval=60, exit_timeout=60)
            sender.log("before")
            raise SystemExit(3)
            """,
            peer.url,
        )
        self.assertEqual((said.returncode, len(peer.logs)), (3, 1), said.stderr)

    def test_a_peer_that_does_not_answer_holds_the_exit_up_for_no_longer_than_allowed(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            begun = time.monotonic()
            said = run(
                """
                import logging
                from tidegate_sender import Sender
                from tidegate_sender.logging import Handler
                senders = [Sender(exit_timeout=0.5) for _ in range(3)]
                logging.basicConfig(handlers=[Handler(sender) for sender in senders])
                logging.warning("nobody hears this")
                """,
                f"http://127.0.0.1:{silent.getsockname()[1]}",
            )
            took = time.monotonic() - begun
        self.assertEqual((said.returncode, said.stderr), (0, ""))
        # Most of it is the start of an interpreter on a machine that has other things to do.
        self.assertLess(took, 60)

    def test_grpc_in_the_environment_is_a_warning_and_not_the_end(self):
        peer = Peer()
        script = """
            from tidegate_sender import Sender
            Sender(exit_timeout=60).log("over HTTP")
        """
        said = run(script, peer.url, OTEL_EXPORTER_OTLP_PROTOCOL="grpc")
        self.assertEqual((said.returncode, len(peer.logs)), (0, 1), said.stderr)
        self.assertIn("`grpc` is not supported", said.stderr)


if __name__ == "__main__":
    unittest.main()
