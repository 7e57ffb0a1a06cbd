"""Style sheet with the colours and fonts of reports and of the development server's page."""

BASE_STYLE = """
:root {
  color-scheme: light dark;
  --paper: #ffffff; --raised: #f6f7f9; --ink: #1b1f24; --muted: #656d76; --grid: #e3e6ea;
  --series-0: #0072b2; --series-1: #d55e00; --series-2: #009e73; --series-3: #b85a93;
  --series-4: #b8860b; --series-5: #2a93c8; --warning: #9a4a00; --shade: rgb(0 0 0 / 0.2);
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14171a; --raised: #1d2126; --ink: #e8eaed; --muted: #9aa3ad; --grid: #31373e;
    --series-0: #58b4f0; --series-1: #ff8a45; --series-2: #2fd0a0; --series-3: #e698c4;
    --series-4: #f0c04a; --series-5: #9ad8f7; --warning: #ffb37a; --shade: rgb(255 255 255 / 0.28);
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
}
main, header { max-width: 58rem; margin: 0 auto; padding: 0 1.25rem; }
header { padding-top: 3rem; }
main { padding-bottom: 4rem; }
h1, h2, p, li, bdi, code { overflow-wrap: anywhere; }
h1 { margin: 0; font-size: 1.9rem; line-height: 1.2; letter-spacing: -0.015em; text-wrap: balance; }
h2 {
  margin: 3rem 0 1rem; padding-top: 0.9rem; border-top: 1px solid var(--grid);
  font-size: 1.2rem; line-height: 1.3;
}
.summary { max-width: 42rem; margin: 0.8rem 0 0; font-size: 1.125rem; }
.note, figcaption, .sampler { color: var(--muted); font-size: 0.875rem; line-height: 1.5; }
.note { margin: 0.6rem 0 0; }
.warning { color: var(--warning); font-size: 0.9375rem; }
"""
