"""The command line `keras-drill`, with one module for each command.

TensorFlow is imported only after the arguments are parsed and checked.
"""
