"""Prints the parameters of every output layer, for real configurations or for one of your own.

python -m keras_drill.workbench.analysis
python -m keras_drill.workbench.analysis VOCABULARY EMBEDDING HIDDEN JOINT DEPTH
"""

import argparse

from keras_drill.workbench.analysis.output_parameters import CONFIGURATIONS, output_parameter_table

if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        prog="python -m keras_drill.workbench.analysis",
        description="Dedicated parameters of every output layer, as a Markdown table.",
    )
    parser.add_argument(
        "sizes",
        nargs="*",
        type=int,
        metavar="SIZE",
        help="vocabulary, embedding, hidden and joint size, DRILL depth; real models when left out",
    )
    sizes = parser.parse_args().sizes
    if len(sizes) not in (0, 5):
        parser.error(f"expected five sizes or none. Received: {len(sizes)}")
    print(output_parameter_table({"these sizes": sizes} if sizes else CONFIGURATIONS))
