"""Prints the number of parameters of every output layer, for known models or for given sizes.

python -m keras_drill.workbench.analysis
python -m keras_drill.workbench.analysis VOCABULARY EMBEDDING HIDDEN JOINT DEPTH
"""

import argparse

from keras_drill.workbench.analysis.output_parameters import CONFIGURATIONS, output_parameter_table

if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        prog="python -m keras_drill.workbench.analysis",
        description="Prints the number of parameters that each output layer adds, as a Markdown "
        "table.",
    )
    parser.add_argument(
        "sizes",
        nargs="*",
        type=int,
        metavar="SIZE",
        help="five numbers: vocabulary, embedding, hidden and joint size, and DRILL depth "
        "(default: the sizes of known models)",
    )
    sizes = parser.parse_args().sizes
    if len(sizes) not in (0, 5):
        parser.error(f"SIZE must be given five times or not at all. Received: {len(sizes)} sizes")
    print(output_parameter_table({"these sizes": sizes} if sizes else CONFIGURATIONS))
