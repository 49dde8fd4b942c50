"""A case that prints without end."""


#: passes
def test_a_before():
    pass


#: floods output
def test_b_ends():
    line = "x" * 65536
    while True:
        print(line)


#: passes
def test_c_after():
    pass
