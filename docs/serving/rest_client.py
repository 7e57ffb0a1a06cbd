"""Lets a served model continue texts, and says how probable they are: REST, with `requests`.

    python rest_client.py http://localhost:8501 MODEL TEXT ...

It talks to TensorFlow Serving and to `keras-drill serve` alike.
"""

import base64
import sys

import requests


def predict(server: str, model: str, signature: str, instances: list) -> list:
    """One answer for each instance."""
    response = requests.post(
        f"{server}/v1/models/{model}:predict",
        json={"signature_name": signature, "instances": instances},
        timeout=60,
    )
    if not response.ok:
        sys.exit(f"{response.status_code}: {response.json()['error']}")
    return response.json()["predictions"]


def main(server: str, model: str, *texts: str) -> None:
    for answer in predict(server, model, "continue", list(texts)):
        print(answer["texts"])
    # As base64 a text may be any bytes, UTF-8 or not.
    instances = [{"b64": base64.b64encode(text.encode()).decode()} for text in texts]
    for answer in predict(server, model, "score", instances):
        length = answer["lengths"]  # what stands behind is padding
        for word, log_prob in zip(answer["words"][:length], answer["log_probs"], strict=False):
            print(f"{log_prob:8.3f}  {word}")
        print(f"perplexity {answer['perplexities']:.5g}")


if __name__ == "__main__":
    main(*sys.argv[1:])
