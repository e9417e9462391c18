import io

from mrcr_action.commands.synth import PLAIN_SECONDS, RowProgress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_terminal_sees_one_line_that_is_rewritten_and_ended() -> None:
    stream, clock = Terminal(), Clock()
    progress = RowProgress(stream, clock)
    progress.begin(2)
    clock.now = 3
    progress.made(1, 2)
    progress.made(2, 2)
    progress.close()
    assert stream.getvalue() == ("\r0/2 rows made, 0 s\r1/2 rows made, 3 s\r2/2 rows made, 3 s\n")


def test_a_log_gets_whole_lines_and_few_of_them() -> None:
    stream, clock = io.StringIO(), Clock()
    progress = RowProgress(stream, clock)
    progress.begin(9)
    for done in range(1, 10):
        clock.now += PLAIN_SECONDS / 4
        progress.made(done, 9)
    progress.close()
    assert stream.getvalue() == "4/9 rows made, 10 s\n8/9 rows made, 20 s\n"
