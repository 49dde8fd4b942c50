import clocks


def test_hour():
    assert clocks.hour_of(0) == 0


def test_zone():
    assert clocks.zone() == ("UTC", 0)


def test_weekday():
    assert clocks.weekday() == "Saturday"
