import net


def test_rates():
    assert net.rates() == 200


def test_mirror():
    assert net.mirror()


def test_resolved():
    assert net.resolved("api.example.org")


def test_metric():
    assert net.push_metric()


def test_greeting():
    assert net.greeting()


def test_free_port():
    assert net.own_port()
