// The views of a model. Each has a function that fills an element when responses arrive.

import { bars, element, percent, shown, spoken, wordRow } from "./elements.js";
import { predict } from "./requests.js";

export const VIEWS = {
  sample: { name: "Continue", label: "Prompt", run: "Continue", show: showContinuation },
  score: { name: "Probabilities", label: "Text", run: "Score", show: showProbabilities },
  senses: { name: "Senses", label: "Text", run: "Show senses", show: showSenses },
  translate: { name: "Translate", label: "Sentences, one per line", run: "Translate", show: showAnswers },
};

// How surprising a word is, in five steps: up to 1, 3, 6, 10 bits, and more.
function surprise(logProb) {
  const bits = -(logProb ?? -Infinity) / Math.LN2;
  return `surprise-${[1, 3, 6, 10].filter((most) => bits > most).length}`;
}

function about(logProb) {
  return logProb === null ? "probability 0" : `probability ${percent(Math.exp(logProb))}`;
}

function scale() {
  const steps = ["likely", "", "", "", "surprising"].map((name, step) =>
    element("span", { class: `word surprise-${step}` }, name || "\u2003"),
  );
  return element("p", { class: "scale note", "aria-hidden": "true" }, ...steps);
}

// The continuation grows by repeated requests: the same seed gives the same words again.
async function showContinuation(place, model, text, settings, signal) {
  const quote = element("blockquote", { dir: "auto" }, element("p", {}, text));
  const words = element("div");
  const details = element("div", { class: "details" });
  place.append(quote, words, details);
  const inputs = {
    prompts: [text],
    temperature: [settings.temperature],
    top_k: [0],
    top_p: [settings.topP],
    min_p: [0],
    seed: [settings.seed],
  };
  for (const name of Object.keys(inputs)) {
    if (!model.signatures.sample.includes(name)) delete inputs[name]; // older exports take fewer
  }
  const ask = (maxNewTokens) =>
    predict(model.name, "sample", { ...inputs, max_new_tokens: [maxNewTokens] }, signal);
  for (let most = 1, done = false; !done; most *= 2) {
    const length = Math.min(most, settings.maxWords);
    const answer = await ask(length);
    done = length === settings.maxWords || answer.lengths[0] < length;
    const whole = answer.texts[0];
    const added = answer.continuations[0];
    const isEnd = whole.endsWith(added);
    quote.replaceChildren(
      element(
        "p",
        {},
        element("span", { class: "prompt" }, isEnd ? whole.slice(0, whole.length - added.length) : ""),
        isEnd ? added : whole,
      ),
    );
    words.replaceChildren(continuationRow(answer));
  }
  words.append(element("p", { class: "note" }, "Choose a word to see its alternatives."));

  function continuationRow(answer) {
    const row = answer.words[0].map((word, index) => ({
      text: word,
      about: about(answer.log_probs[0][index]),
      class: surprise(answer.log_probs[0][index]),
    }));
    return wordRow("Words of the continuation", row, async (index) => {
      try {
        const before = index ? (await ask(index)).texts[0] : text;
        const others = await predict(model.name, "top_k", { texts: [before] }, signal);
        showAlternatives(details, row[index], answer.log_probs[0][index], others);
      } catch (error) {
        if (error.name === "AbortError") return;
        details.replaceChildren(element("p", { class: "warning", role: "alert" }, error.message));
      }
    });
  }
}

function showAlternatives(details, word, logProb, others) {
  const rows = others.words[0].map((text, index) => ({
    text,
    probability: Math.exp(others.log_probs[0][index] ?? -Infinity),
    isChosen: text === word.text,
  }));
  if (!rows.some((row) => row.isChosen)) {
    rows.push({ text: word.text, probability: Math.exp(logProb ?? -Infinity), isChosen: true });
  }
  const title = `Alternatives to “${spoken(word.text)}”`;
  const most = Math.max(...rows.map((row) => row.probability)) || 1;
  details.replaceChildren(element("h3", {}, title), bars(title, rows, most));
}

async function showProbabilities(place, model, text, settings, signal) {
  const answer = await predict(model.name, "score", { texts: [text] }, signal);
  const words = answer.words[0].map((word, index) => ({
    text: word,
    about: about(answer.log_probs[0][index]),
    class: surprise(answer.log_probs[0][index]),
    endsLine: shown(word) === "↵",
  }));
  const details = element("p", { class: "details" });
  place.append(
    wordRow("Words and their probabilities", words, (index) => {
      details.replaceChildren(
        element("bdi", { class: "strong" }, shown(words[index].text)),
        ` has the ${words[index].about}, given the words before it.`,
      );
    }),
    scale(),
    element(
      "p",
      { class: "note" },
      `Perplexity ${answer.perplexities[0]?.toPrecision(4) ?? "infinite"} over ${answer.lengths[0]} words, including ends of lines.`,
    ),
    details,
  );
}

async function showSenses(place, model, text, settings, signal) {
  const answer = await predict(model.name, "senses", { texts: [text] }, signal);
  const words = answer.words[0].map((word, index) => {
    const ids = answer.senses[0][index].filter((id) => id >= 0);
    const probabilities = answer.probabilities[0][index].slice(0, ids.length);
    const best = probabilities.indexOf(Math.max(...probabilities));
    const several = ids.length > 1;
    return {
      text: word,
      ids,
      probabilities,
      best,
      mark: several ? String(best + 1) : "",
      about: several
        ? `sense ${best + 1} of ${ids.length}, ${percent(probabilities[best])}`
        : "one sense",
      class: several ? `sense-${best % 6}` : "single",
      endsLine: shown(word) === "↵",
    };
  });
  const details = element("div", { class: "details" });
  place.append(
    wordRow("Words and their senses", words, (index) => {
      showSensesOf(details, words, index);
      const { ids, text: word } = words[index];
      if (ids.length > 1 && model.signatures.sense_contexts) {
        const place = element("div");
        details.append(place);
        showTrainingText(place, model, word, ids, signal);
      }
    }),
    element("p", { class: "note" }, "The number at a word is its most probable sense. Choose a word to see all its senses."),
    details,
  );
}

// The senses of a word, and the positions in the text where each sense is the most probable.
function showSensesOf(details, words, index) {
  const word = words[index];
  const title = `Senses of “${spoken(word.text)}”`;
  const rows = word.probabilities.map((probability, sense) => ({
    text: `${sense + 1}`,
    probability,
    isChosen: sense === word.best,
    class: word.ids.length > 1 ? `sense-${sense % 6}` : "",
  }));
  details.replaceChildren(element("h3", {}, title), bars(title, rows));
  const places = words.flatMap((other, place) => (other.text === word.text ? [place] : []));
  if (places.length < 2) return;
  const list = element("ul", { class: "contexts" });
  for (const place of places.sort((a, b) => words[a].best - words[b].best || a - b)) {
    const before = [];
    for (let at = place - 1; at >= 0 && !words[at].endsLine && before.length < 6; at--) {
      before.unshift(shown(words[at].text));
    }
    const after = [];
    for (let at = place + 1; at < words.length && !words[at].endsLine && after.length < 6; at++) {
      after.push(shown(words[at].text));
    }
    list.append(context(words[place].best, before.join(" "), words[place].text, after.join(" ")));
  }
  details.append(element("h3", {}, "In this text"), list);
}

function context(sense, before, word, after) {
  const strong = element("strong", {}, shown(word));
  return element("li", { dir: "auto" }, `${sense + 1}: ${before} `, strong, ` ${after}`);
}

// Examples of each sense in the training text, if the exported model contains examples.
async function showTrainingText(place, model, word, ids, signal) {
  let answer;
  try {
    answer = await predict(model.name, "sense_contexts", { senses: ids }, signal);
  } catch (error) {
    if (error.name === "AbortError") return;
    place.append(element("p", { class: "warning", role: "alert" }, error.message));
    return;
  }
  const list = element("ul", { class: "contexts" });
  ids.forEach((id, sense) => {
    answer.probabilities[sense].forEach((probability, index) => {
      if (probability === 0) return; // there are no more
      list.append(context(sense, answer.before[sense][index], word, answer.after[sense][index]));
    });
  });
  if (list.children.length) place.append(element("h3", {}, "In the training text"), list);
}

async function showAnswers(place, model, text, settings, signal) {
  const sources = text.split("\n");
  const answer = await predict(model.name, "translate", { texts: sources }, signal);
  sources.forEach((source, index) => {
    const [best, ...others] = answer.texts[index];
    place.append(
      element("p", { class: "prompt", dir: "auto" }, source),
      element("blockquote", { dir: "auto" }, element("p", {}, best || "(empty)")),
    );
    if (others.length && source.trim()) {
      const list = element("ol", { class: "others", start: 2 });
      others.forEach((other) => list.append(element("li", { dir: "auto" }, other || "(empty)")));
      place.append(list);
    }
  });
}
