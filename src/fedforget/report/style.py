"""The page's one style sheet: light and dark, narrow and wide, screen and paper.

Colours of kinds and classes are of the Okabe–Ito palette, told apart by the colour-blind; no colour says anything
that words do not say beside it.
"""

STYLE = """
:root { color-scheme: light dark; --ink: #1a1c1f; --soft: #555b63; --line: #d5d9de; --paper: #ffffff; --raised: #f5f6f8;
  --link: #00558c; --good: #00684a; --bad: #a8350c; --plain: #56b4e9; --again: #009e73; --calibrated: #e69f00;
  --clean: #cc79a7; --empty: #e4e7eb; --bar: #0072b2; --on: #14161a; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8eaed; --soft: #a9b0b8; --line: #3b4149; --paper: #15171a;
  --raised: #1f2226; --link: #7cc4f5; --good: #4fd1a1; --bad: #ff9a70; --empty: #2b3036; --bar: #56b4e9; } }
* { box-sizing: border-box; }
html { font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
body { margin: 0; color: var(--ink); background: var(--paper); }
main { max-width: 75rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .5rem; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 .75rem; padding-bottom: .25rem; border-bottom: 1px solid var(--line);
  overflow-wrap: anywhere; }
h3 { font-size: 1.05rem; margin: 1.5rem 0 .5rem; overflow-wrap: anywhere; }
p, li { max-width: 45rem; overflow-wrap: anywhere; }
a { color: var(--link); }
code, .mono { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: .9em; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: var(--raised); padding: .75rem;
  border-radius: .375rem; }
.keep { white-space: nowrap; }
td ul { margin: 0; padding-left: 1rem; }
td { min-width: 4.5rem; }
.soft { color: var(--soft); }
.good { color: var(--good); font-weight: 600; }
.bad { color: var(--bad); font-weight: 600; }
.wide { overflow-x: auto; margin: .75rem 0; }
.wide:focus-visible, a:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .94rem; }
caption { text-align: left; color: var(--soft); padding: 0 0 .4rem; font-size: .9rem; }
th, td { text-align: left; padding: .35rem .9rem .35rem 0; border-bottom: 1px solid var(--line); vertical-align: top;
  font-weight: 400; }
td { max-width: 30rem; overflow-wrap: break-word; }
thead th { font-weight: 600; color: var(--soft); white-space: nowrap; }
.number { text-align: right; white-space: nowrap; }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(15rem, 100%), 1fr));
  gap: .75rem 1.5rem; margin: 1rem 0; }
dl div { border-left: 3px solid var(--line); padding-left: .75rem; }
dt { color: var(--soft); font-size: .85rem; }
dd { margin: 0; overflow-wrap: anywhere; }
figure { margin: 1rem 0; }
figcaption { color: var(--soft); font-size: .9rem; max-width: 45rem; }
svg.drawn { display: block; max-width: none; }
svg.drawn text { font: 13px system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif; fill: var(--ink); }
svg.drawn .inside { fill: var(--on); }
svg.drawn .soft { fill: var(--soft); }
svg.drawn .line { stroke: var(--soft); stroke-width: 1.5; fill: none; }
svg.drawn .tip { fill: var(--soft); }
.k-plain { fill: var(--plain); } .k-again { fill: var(--again); } .k-calibrated { fill: var(--calibrated); }
.k-clean { fill: var(--clean); } .k-empty { fill: var(--empty); } .k-bar { fill: var(--bar); }
.swatch svg.drawn { display: inline-block; vertical-align: -1px; margin-right: .4rem; }
.legend { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; list-style: none; padding: 0; margin: .5rem 0; }
.sheet { background: #ffffff; color: #000000; padding: .5rem; border-radius: .375rem; }
.sheet svg { display: block; max-width: 100%; height: auto; }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; list-style: none; padding: 0; margin: .5rem 0; }
@media (max-width: 40rem) { table.many { width: max-content; } .many td { max-width: 16rem; }
  th, td { padding-right: .6rem; } h1 { font-size: 1.4rem; } }
@media print { html { font-size: 11px; } main { max-width: none; padding: 0; } nav { display: none; }
  section, figure, tr { break-inside: avoid; } .wide { overflow: visible; } a { color: inherit; }
  svg.drawn { max-width: 100%; height: auto; } }
"""
