// The form: which models, what to see of them, and the places where answers appear.

import { element } from "./elements.js";
import { listModels } from "./requests.js";
import { VIEWS } from "./views.js";

const form = document.getElementById("form");
const model = document.getElementById("model");
const beside = document.getElementById("beside");
const modes = document.getElementById("modes");
const text = document.getElementById("text");
const settings = document.getElementById("settings");
const run = document.getElementById("run");
const hint = document.getElementById("hint");
const status = document.getElementById("status");
const results = document.getElementById("results");

let models = [];
let areLoading = false;
let current = new AbortController();

function named(name) {
  return models.find((one) => one.name === name) ?? { name, signatures: {} };
}

function modeNow() {
  return form.elements.mode?.value;
}

function option(value, label, selected) {
  return element("option", { value, selected: value === selected }, label);
}

// Fills the lists again and keeps what was chosen.
function fillModels() {
  const names = models.map(({ name, versions }) => [name, `${name}, version ${versions[0]}`]);
  const [first, second] = [model.value, beside.value];
  model.replaceChildren(...names.map(([name, label]) => option(name, label, first)));
  beside.replaceChildren(
    option("", "none", second),
    ...names.map(([name, label]) => option(name, label, second)),
  );
  beside.closest(".field").hidden = names.length < 2;
  fillModes();
}

function fillModes() {
  const before = modeNow();
  const offered = Object.keys(VIEWS).filter((mode) => mode in named(model.value).signatures);
  const chosen = offered.includes(before) ? before : offered[0];
  modes.replaceChildren(
    modes.querySelector("legend"),
    ...offered.map((mode) =>
      element(
        "label",
        {},
        element("input", {
          type: "radio",
          name: "mode",
          value: mode,
          checked: mode === chosen,
          onchange: showMode,
        }),
        element("span", {}, VIEWS[mode].name),
      ),
    ),
  );
  modes.hidden = offered.length < 2;
  showMode();
}

function showMode() {
  const view = VIEWS[modeNow()];
  run.disabled = !view;
  settings.hidden = modeNow() !== "sample";
  run.textContent = view?.run ?? "Run";
  document.getElementById("text-label").textContent = view?.label ?? "Text";
  hint.textContent = view ? "or Ctrl + Enter" : "";
  if (!models.length && areLoading) tell("The models are being loaded …");
  else if (!models.length) tell("There is no model yet. Models appear here after they are exported.");
  else if (!view) tell(`This page cannot show ${model.value}. Use the REST interface instead.`);
  else tell("");
}

function tell(message) {
  if (status.textContent !== message) status.textContent = message;
}

function readSettings() {
  const number = (id) => document.getElementById(id).valueAsNumber;
  return {
    maxWords: number("max-words"),
    temperature: number("temperature"),
    topP: number("top-p"),
    seed: number("seed"),
  };
}

async function submit(event) {
  event.preventDefault();
  const view = VIEWS[modeNow()];
  if (!view) return;
  settings.open ||= !settings.hidden && !form.checkValidity();
  if (!settings.hidden && !form.reportValidity()) return;
  current.abort();
  current = new AbortController();
  const { signal } = current;
  const names = [model.value, ...(beside.value ? [beside.value] : [])];
  results.replaceChildren();
  results.setAttribute("aria-busy", "true");
  await Promise.all(names.map((name) => showOne(view, name, signal)));
  if (!signal.aborted) results.removeAttribute("aria-busy");
}

async function showOne(view, name, signal) {
  const place = element("section", { class: "result", "aria-label": name }, element("h2", {}, name));
  results.append(place);
  const mode = modeNow();
  if (!(mode in named(name).signatures)) {
    place.append(element("p", { class: "note" }, `This model has no signature “${mode}”.`));
    return;
  }
  try {
    await view.show(place, named(name), text.value, readSettings(), signal);
  } catch (error) {
    if (error.name === "AbortError") return;
    place.append(element("p", { class: "warning", role: "alert" }, error.message));
  }
}

async function refresh() {
  try {
    const { models: found, are_loading } = await listModels();
    areLoading = are_loading;
    if (areLoading) setTimeout(refresh, 1000);
    if (JSON.stringify(found) === JSON.stringify(models) && found.length) return;
    models = found;
    fillModels();
  } catch (error) {
    tell(error.message);
  }
}

form.addEventListener("submit", submit);
form.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
});
model.addEventListener("change", fillModes);
window.addEventListener("focus", refresh); // new models may have come
refresh();
