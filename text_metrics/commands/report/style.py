"""The style of the page of a report: light, dark, on a phone and on paper."""

from text_metrics.commands.report.drawing import variables

STYLE = (
    f"""
:root {{ color-scheme: light dark; {variables(dark=False)} }}
@media (prefers-color-scheme: dark) {{ :root {{ {variables(dark=True)} }} }}
@media print {{ :root {{ color-scheme: light; {variables(dark=False)} }} }}
"""
    + """
* { box-sizing: border-box }
html { scroll-behavior: smooth; -webkit-text-size-adjust: 100% }
@media (prefers-reduced-motion) { html { scroll-behavior: auto } }
body { background: var(--page); color: var(--ink); font: 16px/1.55 system-ui, sans-serif; margin: 0 auto;
  max-width: 76rem; padding: 2.5rem 1.5rem 5rem; overflow-wrap: anywhere }
a { color: var(--accent) }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; border-radius: 2px }
main:focus { outline: none }
.skip { background: var(--page); left: .5rem; padding: .5rem 1rem; position: absolute; top: .5rem; z-index: 1 }
.skip:not(:focus) { left: -100vw }
h1 { font-size: 1.9rem; font-weight: 650; letter-spacing: -.015em; line-height: 1.2; margin: 0 0 .5rem }
h2 { font-size: 1.4rem; font-weight: 650; letter-spacing: -.01em; line-height: 1.25; margin: 0 0 .4rem }
h3 { font-size: 1rem; font-weight: 650; margin: 2rem 0 .5rem }
header p { color: var(--soft); margin: 0; max-width: 46rem }
nav ol, .key { display: flex; flex-wrap: wrap; gap: .3rem 1.4rem; list-style: none; margin: 1rem 0 0; padding: 0 }
nav { border-bottom: 1px solid var(--line); border-top: 1px solid var(--line); margin-top: 1.2rem; padding: .7rem 0 }
nav ol { margin: 0 }
.name { align-items: baseline; display: inline-flex; gap: .45em; max-width: 100% }
bdi { min-width: 0 }
.mark { flex: none; overflow: visible; transform: translateY(1px) }
section { margin-top: 3.5rem; scroll-margin-top: 1rem }
.answer { font-size: 1.12rem; line-height: 1.5; margin: 0 0 1.5rem; max-width: 46rem }
.figures { display: grid; gap: 1.5rem 2rem; grid-template-columns: repeat(auto-fill, minmax(min(20.5rem, 100%), 1fr));
  margin-bottom: 2rem }
figure { margin: 0; min-width: 0 }
figure.plane, figure.collapse, figure.power { grid-column: 1 / -1; max-width: 36rem }
figure svg { display: block; height: auto; max-width: 100%; width: 100% }
@media (min-width: 62rem) {
  #quality .figures { grid-template-columns: minmax(0, 36rem) minmax(0, 23rem); grid-template-rows: auto 1fr }
  figure.plane { grid-column: auto; grid-row: span 2 }
}
#likeness .figures { display: flex; flex-wrap: wrap }
#likeness figure { max-width: 100% }
figure[class^=cosine] svg { max-width: none; width: auto }
#likeness figcaption { min-width: 100%; width: 0 }
figcaption { color: var(--soft); font-size: .85rem; line-height: 1.4; margin-top: .35rem; max-width: 38rem }
figure .wide { overflow-x: auto }
.caption + .wide { overflow: auto }
.tall { max-height: 44rem }
table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; line-height: 1.35 }
.caption { color: var(--soft); font-size: .88rem; line-height: 1.4; margin: 2rem 0 .5rem; max-width: 46rem }
th, td { border-bottom: 1px solid var(--line); padding: .45rem .9rem .45rem 0; text-align: right; vertical-align: top;
  white-space: nowrap }
th { font-weight: 600 }
thead th { background: var(--page); box-shadow: inset 0 -1.5px var(--soft); position: sticky; top: 0;
  vertical-align: bottom; z-index: 1 }
thead .name { max-width: 10rem; min-width: 6rem; white-space: normal }
thead small { margin-left: auto; max-width: 9.5rem; min-width: 6rem; overflow-wrap: normal;
  white-space: normal }
th:first-child { text-align: left }
th:first-child small { margin-left: 0 }
tbody th { background: var(--page); font-weight: 500; left: 0; max-width: 20rem; overflow-wrap: anywhere;
  position: sticky; white-space: normal }
tbody th .name, tbody th > bdi { display: inline-flex; min-width: 9rem }
small { color: var(--soft); display: block; font-size: .82em; font-weight: 400 }
td.marked { background: linear-gradient(var(--mark), var(--mark)) right / calc(100% - .4rem) 100% no-repeat;
  padding-right: .9rem }
td strong { font-weight: 700 }
.words { text-align: left }
td.words { max-width: 30rem; min-width: 12rem; overflow-wrap: anywhere; white-space: normal }
dl { display: grid; font-size: .88rem; gap: .35rem 1.5rem; grid-template-columns: minmax(6rem, max-content) 1fr;
  margin: 0 }
dd { margin: 0; min-width: 0 }
code { font: .86em/1.5 ui-monospace, monospace; overflow-wrap: anywhere }
details { border-bottom: 1px solid var(--line) }
details > summary { cursor: pointer; padding: .5rem 0 }
details > summary:hover { color: var(--accent) }
details > :last-child:not(summary) { margin-bottom: 1rem }
details > .caption { margin-top: .5rem }
summary small { display: inline-block; margin-left: .3em }
article { background: var(--panel); border-radius: 6px; margin: .6rem 0; padding: .8rem 1rem }
article h4 { font-size: .95rem; font-weight: 600; margin: 0; overflow-wrap: anywhere }
article p { color: var(--soft); font-size: .85rem; margin: .15rem 0 .5rem }
.texts { margin: .4rem 0 0; padding-left: 1.6rem }
.texts > li { margin: .35rem 0; max-width: 46rem; overflow-wrap: anywhere; white-space: pre-wrap }
.texts > li::marker { color: var(--soft); font-size: .85em }
.texts details, td details, th details, h4 details { border: 0 }
.texts summary, td summary, th summary, h4 summary { padding: 0 }
.closest { background: var(--mark); border-radius: 3px; font-size: .8rem; margin-left: .5em; padding: .05em .4em;
  white-space: nowrap }
.caveats { margin: 0 0 2rem; max-width: 46rem; padding: 0; list-style: none }
.caveats li { border-left: 3px solid var(--s4); margin: .6rem 0; padding: .1rem 0 .1rem .8rem }
@media (max-width: 40rem) {
  body { padding: 1.25rem 1rem 3rem }
  h1 { font-size: 1.5rem }
  nav ol { flex-direction: column }
  .answer { font-size: 1.05rem }
  dl { grid-template-columns: 1fr }
  dd { margin-bottom: .5rem }
  tbody th { max-width: 9rem }
}
@media print {
  body { font-size: 10pt; max-width: none; padding: 0 }
  nav, .skip { display: none }
  section { margin-top: 1.5rem }
  figure, tr, article { break-inside: avoid }
  h2, h3, .answer { break-after: avoid }
  .caption + .wide { max-height: none; overflow: visible }
  th, td { white-space: normal }
  details::details-content { content-visibility: visible; display: block }
}
"""
)
