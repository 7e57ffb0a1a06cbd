def add_parser(c):
    return c.add_parser("demo")


def run(args):
    return 0
