// Elements from data. Whatever a model or a user wrote becomes text, never markup.

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

// A probability in so many digits as can be compared.
export function percent(probability) {
  const value = 100 * probability;
  if (value > 0 && value < 0.01) return "< 0.01 %";
  return `${value.toFixed(value < 0.1 ? 2 : value < 10 ? 1 : 0)} %`;
}

// What a word looks like in running text: pieces of words are marked by what begins a word.
export function shown(word) {
  if (word === "<eos>" || word === "</s>") return "↵";
  return word.startsWith("▁") ? word.slice(1) || "␣" : word;
}

export function spoken(word) {
  return shown(word) === "↵" ? "end of line" : shown(word);
}

// Words as a row of buttons of which one is chosen: one stop of the Tab key, arrows between them.
export function wordRow(label, words, choose) {
  const buttons = words.map((word, index) =>
    element(
      "button",
      {
        type: "button",
        class: `word ${word.class ?? ""}`,
        "aria-label": `${spoken(word.text)}, ${word.about}`,
        "aria-pressed": "false",
        title: word.about,
        tabindex: index ? -1 : 0,
        onclick: () => press(index),
      },
      element("bdi", {}, shown(word.text)),
      ...(word.mark ? [element("sub", {}, word.mark)] : []),
    ),
  );

  function press(index) {
    buttons.forEach((button, place) => {
      button.setAttribute("aria-pressed", String(place === index));
      button.tabIndex = place === index ? 0 : -1;
    });
    choose(index);
  }

  function move(event) {
    const steps = { ArrowRight: 1, ArrowLeft: -1, Home: -words.length, End: words.length };
    if (!(event.key in steps)) return;
    event.preventDefault();
    const now = buttons.indexOf(document.activeElement);
    const next = Math.min(Math.max(now + steps[event.key], 0), buttons.length - 1);
    buttons[now].tabIndex = -1;
    buttons[next].tabIndex = 0;
    buttons[next].focus();
  }

  const row = element("div", { class: "words", role: "group", "aria-label": label, onkeydown: move });
  words.forEach((word, index) => {
    row.append(buttons[index], word.endsLine ? element("br") : " ");
  });
  return row;
}

// Names with their probabilities as bars; the chosen one stands out. A full bar is `most`.
export function bars(caption, rows, most = 1) {
  const list = element("ol", { class: "bars", "aria-label": caption });
  for (const row of rows) {
    const bar = element("span", { class: `bar ${row.class ?? ""}` });
    bar.style.inlineSize = `${(100 * row.probability) / most}%`;
    list.append(
      element(
        "li",
        { "aria-current": row.isChosen ? "true" : null },
        element("bdi", {}, shown(row.text)),
        element("span", { class: "track", "aria-hidden": "true" }, bar),
        element("span", { class: "number" }, percent(row.probability)),
      ),
    );
  }
  return list;
}
