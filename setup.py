"""Metadata of the `keras-drill` distribution; tool configuration is in pyproject.toml."""

from pathlib import Path

from setuptools import find_packages, setup

_SERVE = ["aiohttp>=3.9", "grpcio>=1.60", "tensorflow-serving-api>=2.16"]

setup(
    name="keras-drill",
    version="0.1.0",
    description="Output layers for neural language generation, on Keras 3 and TensorFlow.",
    long_description=(Path(__file__).parent / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    author="The keras_drill authors",
    license="Apache-2.0",
    license_files=["LICENSE"],
    keywords="keras tensorflow language-model softmax weight-tying drill awd-lstm",
    classifiers=[
        "Development Status :: 4 - Beta",
        "Intended Audience :: Developers",
        "Intended Audience :: Science/Research",
        "Operating System :: POSIX",
        "Operating System :: POSIX :: Linux",
        "Operating System :: MacOS",
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3.10",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Typing :: Typed",
    ],
    packages=find_packages(include=["keras_drill", "keras_drill.*"]),
    package_data={
        "keras_drill": ["py.typed", "workbench/recipes/*.toml", "workbench/serving/web/*"]
    },
    py_modules=["keras_drill_command"],
    python_requires=">=3.10,<3.14",
    install_requires=[
        "keras>=3.12",
        "tensorflow>=2.16",
        "tensorflow-text>=2.16",
        "tensorboard>=2.16",
        "numpy>=1.26",
        "matplotlib>=3.8",
        "tomli>=2.0; python_version < '3.11'",
    ],
    extras_require={
        "analysis": ["scipy>=1.11"],
        "completion": ["argcomplete>=3.1"],
        "ctranslate2": ["ctranslate2>=4.8"],
        "onnx": ["tf2onnx>=1.17"],
        "serve": _SERVE,
        "browser": ["playwright>=1.45"],
        "pretrained": ["keras-hub>=0.25", "safetensors>=0.4"],
        "tuner": ["keras-tuner>=1.4.7"],
        "subwords": ["sentencepiece>=0.2"],
        "translation": ["sentencepiece>=0.2", "sacrebleu>=2.4", "sacremoses>=0.1"],
        "test": [
            "argcomplete>=3.1",
            "ctranslate2>=4.8",
            "pytest>=8",
            "pytest-xdist>=3.5",
            "hypothesis>=6.100",
            "ruff>=0.6",
            "import-linter>=2.1",
            "scipy>=1.11",
            "scikit-learn>=1.4",
            "keras-hub>=0.25",
            "safetensors>=0.4",
            "keras-tuner>=1.4.7",
            "sentencepiece>=0.2",
            "sacrebleu>=2.4",
            "sacremoses>=0.1",
            # The oldest TensorFlow needs an older protobuf than ONNX does.
            'tf2onnx>=1.17; python_version >= "3.11"',
            'onnxruntime>=1.20; python_version >= "3.11"',
            "pyyaml>=6",
            "requests>=2.31",
            *_SERVE,
        ],
        "jax": ["jax>=0.6.1"],
        "types": ["mypy>=1.15"],
        "docs": [
            "sphinx>=8.1",
            "myst-parser>=4",
            "furo>=2024.8",
            # The tutorials, which run while the site is built.
            "matplotlib>=3.8",
            "keras-hub>=0.25",
        ],
        "package": ["build>=1.2"],
        "mutation": ["cosmic-ray>=8.4", "coverage>=7.6"],
        "benchmarks": ["torch>=2.4", "scipy>=1.11", "scikit-learn>=1.4", "keras-hub>=0.25"],
    },
    entry_points={"console_scripts": ["keras-drill=keras_drill_command:main"]},
)
