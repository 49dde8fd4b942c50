import clocks


def test_even_second():
    assert clocks.is_even_second()


def test_expires_before_the_day_is_over():
    assert clocks.expires_within(3600).date() == clocks.stamp().date()


def test_two_names_of_one_moment():
    assert clocks.report_name() == "report-1789171200000000000.txt"


def test_a_new_file_is_older_than_the_frozen_clock():
    # File times are real: only their distance from the clock is large and steady.
    assert abs(clocks.age_of_a_new_file()) > 3600


def test_file_time():
    assert clocks.modified_at_an_even_moment()


def test_elapsed():
    assert clocks.took_an_even_time()


def test_ticket():
    assert clocks.ticket()


def test_far_deadline():
    assert clocks.deadline(3600) > clocks.deadline(0)


def test_uptime():
    assert clocks.up_since()
