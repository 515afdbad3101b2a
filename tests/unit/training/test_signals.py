import os
import signal
import threading

import pytest

from regard.training.signals import Interrupts


def send(number):
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_raise_keyboard_interrupt(number):
    with Interrupts(), pytest.raises(KeyboardInterrupt):
        send(number)


def test_deferred_section_completes_before_the_interrupt():
    done = []
    with Interrupts() as interrupts, pytest.raises(KeyboardInterrupt), interrupts.deferred():
        send(signal.SIGINT)
        done.append("section")
    assert done == ["section"]


def test_ignored_signals_have_no_effect():
    with Interrupts() as interrupts:
        interrupts.ignore()
        send(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_handlers_are_restored():
    before = signal.getsignal(signal.SIGINT)
    with Interrupts():
        assert signal.getsignal(signal.SIGINT) != before
    assert signal.getsignal(signal.SIGINT) == before


def test_other_threads_do_not_change_handlers():
    seen = []

    def work():
        with Interrupts():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGINT)]


def test_only_the_first_signal_interrupts():
    with Interrupts():
        with pytest.raises(KeyboardInterrupt):
            send(signal.SIGINT)
        send(signal.SIGTERM)


def test_hang_up_that_is_ignored_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as `nohup` does
    try:
        with Interrupts():
            send(signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
