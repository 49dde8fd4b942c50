"""A case that takes all memory there is."""


#: passes
def test_a_before():
    pass


#: eats memory
def test_b_ends():
    hoard = []
    while True:
        hoard.append(bytearray(8 << 20))


#: passes
def test_c_after():
    pass
