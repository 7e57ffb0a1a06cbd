"""A development server for exported models, with TensorFlow Serving's interfaces (TensorFlow only).

It runs SavedModels with TensorFlow and tensorflow-text alone. See docs/how-to/serve.md.
"""

from keras_drill.workbench.serving.batching import BatchingOptions
from keras_drill.workbench.serving.limits import Limits
from keras_drill.workbench.serving.server import Server, ServerOptions, serve

__all__ = ["BatchingOptions", "Limits", "Server", "ServerOptions", "serve"]
