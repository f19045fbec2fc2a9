"""Forks while other threads start, end, resolve names and shake hands. TIDEGATE_FORKS says how many."""

import os
import socket
import threading
import time
import unittest
import warnings

from peer import TLS, Peer
from tidegate_sender import Sender

FORKS = int(os.environ.get("TIDEGATE_FORKS", "200"))


class Forks(unittest.TestCase):
    def test_children_start_whatever_their_parent_was_doing(self):
        peer, other = Peer(), Peer(tls=True)
        sender = Sender(peer.url, flush_interval=0.005, timeout=50)
        os.environ["OTEL_EXPORTER_OTLP_CERTIFICATE"] = str(TLS / "ca.pem")
        handshaking = Sender(other.url, timeout=50)
        del os.environ["OTEL_EXPORTER_OTLP_CERTIFICATE"]
        self.assertTrue(sender.log("parent"))
        self.assertEqual(sender.flush(50), 0)
        stop = threading.Event()

        def threads():
            thread = threading.Thread(target=lambda: None)
            thread.start()
            thread.join()

        def handshakes():
            handshaking.log("noise")
            handshaking.flush(1)

        def again(noise):
            while not stop.is_set():
                noise()

        noises = [threads, lambda: socket.getaddrinfo("localhost", 1), handshakes]
        running = [threading.Thread(target=again, args=(noise,), daemon=True) for noise in noises]
        for thread in running:
            thread.start()
        try:
            for number in range(FORKS):
                self.child(sender, number)
        finally:
            stop.set()
            for thread in running:
                thread.join()
        bodies = [log.body.string_value for log in peer.logs]
        self.assertEqual(sorted(bodies), sorted(["parent", *(f"child {number}" for number in range(FORKS))]))
        self.assertGreater(len(other.logs), 0)

    def child(self, sender, number):
        with warnings.catch_warnings():
            # That forks and threads do not go together, which is the point.
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            left = 1
            try:
                if sender.log(f"child {number}"):
                    left = sender.flush(50)
            finally:
                os._exit(min(left, 100))
        until = time.monotonic() + 60
        while not self.ended(child):
            self.assertLess(time.monotonic(), until, f"child {number} is stuck: process {child}")
            time.sleep(0.001)

    def ended(self, child):
        """Whether it has; fails when it did so badly."""
        process, status = os.waitpid(child, os.WNOHANG)
        if process == 0:
            return False
        self.assertEqual(os.waitstatus_to_exitcode(status), 0, "it did not see sent what it made")
        return True


if __name__ == "__main__":
    unittest.main()
