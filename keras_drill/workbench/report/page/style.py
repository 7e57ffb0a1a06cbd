"""The style sheet of the pages."""

from keras_drill.workbench.page_style import BASE_STYLE

STYLE = (
    BASE_STYLE
    + """\
/* A shadow at each edge beyond which there is more: it stays, and a cover moves with the table. */
.scroll {
  overflow-x: auto; scrollbar-width: thin; scrollbar-color: var(--muted) transparent;
  background:
    linear-gradient(to right, var(--paper) 40%, transparent) left / 2.5rem 100% local,
    linear-gradient(to left, var(--paper) 40%, transparent) right / 2.5rem 100% local,
    linear-gradient(to right, var(--shade), transparent) left / 0.8rem 100% scroll,
    linear-gradient(to left, var(--shade), transparent) right / 0.8rem 100% scroll,
    var(--paper);
  background-repeat: no-repeat;
}
.scroll:focus-visible, summary:focus-visible {
  outline: 2px solid var(--series-0); outline-offset: 2px;
}
table {
  width: 100%; border-collapse: separate; border-spacing: 0; font-size: 0.9rem;
  font-variant-numeric: tabular-nums;
}
caption {
  position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%);
  white-space: nowrap;
}
th, td { padding: 0.45rem 0 0.45rem 1.1rem; text-align: right; vertical-align: top; }
th:first-child { padding-left: 0; text-align: left; }
thead th { vertical-align: bottom; color: var(--muted); font-weight: 500; line-height: 1.3; }
tbody tr:first-child > * { border-top: 1.5px solid var(--muted); }
tbody tr + tr > * { border-top: 1px solid var(--grid); }
tfoot tr > * { border-top: 1.5px solid var(--muted); }
tbody th, tfoot th { min-width: 6rem; font-weight: 600; }
td { white-space: nowrap; }
td > bdi, td code { display: inline-block; min-width: 7rem; white-space: normal; }
td .list { display: inline-block; min-width: 16rem; white-space: normal; }
thead th bdi { display: inline-block; min-width: 5rem; max-width: 14rem; }
.run { display: flex; gap: 0.5rem; align-items: baseline; min-width: 12rem; }
.run small {
  display: block; color: var(--muted); font-size: 0.85rem; font-weight: 400; line-height: 1.4;
}
.facts th, .facts td { text-align: left; }
.words th:last-child, .words td:last-child { text-align: left; }
.facts tbody th { font-weight: 400; min-width: 12rem; }
.facts td:only-of-type { width: 100%; }
code {
  font: 0.9em/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
}
figure { margin: 0; }
figcaption { max-width: 46rem; margin-top: 0.4rem; }
figure + .scroll, .scroll + figure { margin-top: 1.5rem; }
figure + figure, .warning + figure { margin-top: 2rem; }
.note + .scroll, .note + .cards { margin-top: 1rem; }
.plot svg { display: block; width: 100%; height: auto; }
.plot svg * { stroke-linejoin: round; stroke-linecap: butt; }
.plot .narrow { display: none; }
h3 { margin: 1.75rem 0 0.6rem; font-size: 1rem; line-height: 1.3; }
.stack { display: grid; gap: 0.75rem; margin-top: 1rem; }
.stack figure + figure, .maps figure + figure, .cards figure + figure { margin-top: 0; }
td small { display: block; color: var(--muted); font-size: 0.85rem; font-weight: 400; }
.texts dl {
  display: grid; grid-template-columns: minmax(6rem, max-content) 1fr; gap: 0.3rem 1.1rem;
  margin: 0;
}
.texts dt { max-width: 14rem; color: var(--muted); font-size: 0.875rem; line-height: 1.7; }
.texts dt .key { margin-right: 0.4rem; }
.texts dt small { margin-left: 0.6rem; white-space: nowrap; }
.texts dd { min-width: 0; margin: 0; overflow-wrap: anywhere; white-space: pre-line; }
.texts figcaption { margin-top: 0.5rem; }
/* Weight and line, so that it is seen without colour; the brackets are for screen readers. */
mark {
  background: none; color: inherit; font-weight: 600;
  text-decoration: underline 2px var(--series-1); text-underline-offset: 0.2em;
}
mark::before, mark::after {
  position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%);
  white-space: nowrap;
}
mark::before { content: " [differs: "; }
mark::after { content: "] "; }
.gap { margin-right: 0.25em; color: var(--series-1); font-size: 0.85em; white-space: nowrap; }
.maps {
  display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr));
  gap: 1.5rem; margin-top: 1.5rem;
}
.maps figure { min-width: 0; }
.maps .origin { margin: 0 0 0.5rem; }
.map { width: auto; font-size: 0.8125rem; }
.map tr > th, .map tr > td { padding: 0; border: 0; vertical-align: middle; }
.map thead tr > th { text-align: left; vertical-align: bottom; color: inherit; }
.map thead th bdi {
  display: block; min-width: 0; max-width: none; max-height: 9rem; padding: 0.25rem 0;
  overflow: hidden; writing-mode: vertical-rl; transform: rotate(180deg); white-space: nowrap;
  line-height: 1.35rem;
}
.map tbody tr > th {
  min-width: 0; max-width: 9rem; padding-right: 0.5rem; overflow: hidden; text-align: right;
  text-overflow: ellipsis; white-space: nowrap; font-weight: 500;
}
.map tbody tr > td { border: 1px solid var(--grid); }
.map i, .scale i {
  display: block; width: 1.35rem; height: 1.35rem; overflow: hidden; background: var(--series-0);
  color: transparent; font-size: 0; print-color-adjust: exact;
}
.scale { white-space: nowrap; }
.scale i { display: inline-block; width: 1rem; height: 1rem; vertical-align: -0.15rem; }
@media screen and (max-width: 36rem) {
  main, header { padding-left: 1rem; padding-right: 1rem; }
  header { padding-top: 1.75rem; }
  h1 { font-size: 1.55rem; }
  .run { min-width: 7.5rem; }
  .facts tbody th { min-width: 8.5rem; }
  tr > th:first-child { position: sticky; left: 0; background: var(--paper); }
  .map tbody tr > th { max-width: 6.5rem; }
  .texts dl { grid-template-columns: 1fr; gap: 0; }
  .texts dt { max-width: none; margin-top: 0.5rem; }
  .plot .wide { display: none; }
  .plot .narrow { display: block; }
}
.keys {
  display: flex; flex-wrap: wrap; gap: 0.25rem 1.5rem; margin: 0 0 0.6rem; padding: 0;
  list-style: none; font-size: 0.9375rem;
}
.keys .key { margin-right: 0.45rem; }
.key { flex: none; height: 0.75em; fill: none; }
.cards {
  display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 19rem), 1fr));
  gap: 1rem;
}
.cards + .cards { margin-top: 1rem; }
.card {
  display: flex; flex-direction: column; padding: 1rem 1.15rem; background: var(--raised);
  border-radius: 0.5rem;
}
blockquote { margin: 0 0 0.75rem; }
blockquote p { margin: 0; white-space: pre-wrap; text-align: start; }
.origin {
  display: flex; flex-wrap: wrap; gap: 0 0.5rem; align-items: baseline; margin-top: auto;
  color: var(--ink);
}
.graph { display: block; max-width: 100%; height: auto; }
.graph text { fill: var(--muted); font-size: 11.5px; }
.graph .name { fill: var(--ink); font-size: 13.5px; font-weight: 600; }
.graph .line { fill: none; stroke: var(--muted); stroke-width: 1.2; }
.graph .head { fill: var(--muted); }
.pipeline tbody th { min-width: 11rem; font-weight: 600; }
.pipeline td ul { margin: 0; padding: 0; list-style: none; }
a { color: var(--series-0); }
details { margin-top: 1.25rem; }
summary { cursor: pointer; color: var(--muted); }
details[open] summary { margin-bottom: 0.75rem; }
@media print { h2 { break-after: avoid; } figure, tr { break-inside: avoid; } }
"""
)
