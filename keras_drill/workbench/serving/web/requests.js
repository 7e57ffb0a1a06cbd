// Requests to this server: TensorFlow Serving's REST interface, and the list of models.

// The models that can answer, and whether others are being loaded.
export async function listModels() {
  return await ask("models");
}

// The outputs of a signature, by name; each has one entry for every text.
export async function predict(model, signature, inputs, signal) {
  const path = `v1/models/${encodeURIComponent(model)}:predict`;
  const body = JSON.stringify({ signature_name: signature, inputs });
  return (await ask(path, { method: "POST", body, signal })).outputs;
}

async function ask(path, options = {}) {
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not respond. Was it stopped?");
  }
  const answer = parse(await response.text());
  if (!response.ok) throw new Error(answer.error ?? `${response.status}`);
  return answer;
}

// TensorFlow Serving writes numbers that JSON has no word for.
function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    const tokens = /"(?:[^"\\]|\\.)*"|-?Infinity|NaN/g;
    return JSON.parse(text.replace(tokens, (token) => (token[0] === '"' ? token : "null")));
  }
}
